"use strict";
// Why a label: bars of log-odds, one for each contributing feature; to the right they favour the label.
(function (T) {
  T.oddsBar = function (width, side) {
    const inner = T.make("i", {class: side});
    inner.style.width = `${width}%`;
    return inner;
  };

  // The lines of an explanation; log-odds of null are infinite: the value rules the other class out.
  T.odds = function (explanation) {
    const parts = [{feature: "before any feature", value: "", log_odds: explanation.prior}, ...explanation.contributions];
    const longest = Math.max(...parts.map((part) => part.log_odds === null ? 0 : Math.abs(part.log_odds)), 1e-12);
    return parts.map((part) => {
      const sure = part.log_odds === null;
      const width = sure ? 100 : 100 * Math.abs(part.log_odds) / longest, right = sure || part.log_odds > 0;
      const label = T.make("span", {title: `${part.feature} ${part.value}`}, T.cut(part.feature, 24), part.value === "" ? null : T.make("span", {class: "quiet"}, ` ${T.cut(part.value, 16)}`));
      const track = T.make("span", {class: "track two"}, T.make("span", {}, right ? null : T.oddsBar(width, "left")), T.make("span", {}, right ? T.oddsBar(width, "right") : null));
      return T.make("div", {class: "odds", "data-feature": part.feature, "data-odds": part.log_odds}, label, track, T.make("span", {class: "figure"}, signed(part.log_odds)));
    });
  };
  T.oddsNote = function (explanation) {
    const rest = explanation.others ? ` ${T.count(explanation.others)} more features add ${amount(explanation.rest)}.` : "";
    return `Log-odds: orange speaks for ${explanation.label}, blue for ${explanation.against}; together ${amount(explanation.total)}, exactly.${rest}`;
  };
  const amount = (value) => value === null ? "∞" : value.toFixed(2);
  const signed = (value) => (value > 0 ? "+" : "") + amount(value);
})(Tinybayes);
