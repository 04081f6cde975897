"use strict";
// Runs a model as it is described by tinybayes, in the integers of its exported programs. JavaScript computes with
// doubles: every sum and product here is an integer below 2**53, and shifts are divisions that are rounded down.
const tinybayesProgram = (function () {
  const down = (value, bits) => Math.floor(value / 2 ** bits);
  const times = (count) => Array.from({length: count}, (_, i) => i);
  const HALF = 2 ** 31, WHOLE = 2 ** 32;

  // Numbers in base64, little-endian: unsigned ones of 1, 2 or 4 bytes, signed ones and floats of 4.
  function numbers(packed) {
    if (Array.isArray(packed)) return packed;
    const bytes = Uint8Array.from(atob(packed.data), (sign) => sign.charCodeAt(0)), view = new DataView(bytes.buffer);
    const read = {
      u1: (i) => bytes[i], u2: (i) => view.getUint16(2 * i, true), u4: (i) => view.getUint32(4 * i, true),
      i4: (i) => view.getInt32(4 * i, true), f4: (i) => view.getFloat32(4 * i, true),
    }[packed.type];
    return times(bytes.length / +packed.type[1]).map(read);
  }

  // A classifier of tables: sums of rows, and where values are missing, sums over them from the leaves of the forest up.
  function tables(model) {
    const {classes, states, forest, shift} = model, stored = numbers(model.codes), start = numbers(model.start);
    const worth = model.levels ? (code) => model.levels[code] : model.floats ? (code) => code : (code) => -code;
    const shared = model.common ? numbers(model.common.codes) : null, up = 2 ** shift;

    function complete(x) {
      const sums = start.slice();
      for (const [first, steps] of model.terms) {
        const row = steps.reduce((at, [feature, stride]) => at + stride * x[feature], first);
        for (let c = 0; c < classes; c++) sums[c] += worth(stored[classes * row + c]);
      }
      if (shared) {
        const same = model.common.terms.reduce((sum, [first, steps]) => {
          return sum + worth(shared[steps.reduce((at, [feature, stride]) => at + stride * x[feature], first)]);
        }, model.common.start);
        for (let c = 0; c < classes; c++) sums[c] += same;
      }
      return sums.map((sum) => sum * up);
    }

    // log(exp(a) + exp(b)), of integers interpolated in a table of log(1 + exp(-i / 4)).
    function logAdd(a, b) {
      const high = Math.max(a, b), distance = high - Math.min(a, b);
      if (model.floats) return high === -Infinity ? high : high + Math.log1p(Math.exp(-distance));
      if (model.fraction < 0 || distance >= 8 * 2 ** model.fraction) return high;
      const fine = down(distance, model.fraction - model.precise), i = down(fine, 8), log = model.log;
      return high + log[i] - down((log[i] - log[i + 1]) * (fine % 256), 8);
    }

    const known = (code, count) => Number.isInteger(code) && code >= 0 && code < count;
    const range = (code, count) => known(code, count) ? [code] : times(count);
    function summedOut(x) {
      const sums = start.map((sum) => sum * up), inbox = new Map();
      for (const [first, feature, count, parent, above] of forest) {
        const received = inbox.get(feature), values = range(x[feature], count);
        if (parent >= 0 && !inbox.has(parent)) inbox.set(parent, new Array(classes * above).fill(0));
        const sent = parent >= 0 ? inbox.get(parent) : sums;
        for (const upper of parent >= 0 ? range(x[parent], above) : [0]) {
          for (let c = 0; c < classes; c++) {
            const terms = values.map((value) => {
              return worth(stored[classes * (first + count * upper + value) + c]) * up + (received ? received[classes * value + c] : 0);
            });
            sent[classes * upper + c] += terms.reduce(logAdd);
          }
        }
      }
      return sums;
    }

    return function (x) {
      if (states.every((count, feature) => known(x[feature], count))) return complete(x);
      return forest ? summedOut(x) : null;  // other structures take complete rows
    };
  }

  // A neural net: sums of codes times values, then biases and activations.
  function net(model) {
    const layers = model.layers.map((layer) => {
      const top = 2 ** layer.bits - 1;
      return {...layer, weights: numbers(layer.codes).map((code) => 2 * code - top)};
    });
    function weigh(layer, rows) {
      const sums = new Array(layer.units).fill(0);
      for (const [row, value] of rows) {
        if (value) for (let u = 0; u < layer.units; u++) sums[u] += layer.weights[row * layer.units + u] * value;
      }
      return sums;
    }
    function activate(layer, sums) {
      return sums.map((sum, u) => {
        const total = sum + layer.bias[u];
        if (layer.activation === "none") return total;
        if (layer.activation === "sign") return total >= 0 ? 1 : -1;
        const half = layer.after ? 2 ** (layer.after - 1) : 0;
        return Math.min(255, down(down(Math.max(0, total), layer.before) * layer.multiplier[u] + half, layer.after));
      });
    }
    // Pairs of a weight's row and a value in a window of 3 x 3 pixels; there are zeros around the image.
    function window(layer, values, top, left) {
      const [rows, columns, channels] = layer.image, pairs = [];
      for (let k = 0; k < 9; k++) {
        const r = top + Math.floor(k / 3), c = left + k % 3;
        if (r < 0 || r >= rows || c < 0 || c >= columns) continue;
        for (let i = 0; i < channels; i++) pairs.push([k * channels + i, values[(r * columns + c) * channels + i]]);
      }
      return pairs;
    }
    function convolve(layer, values) {
      const pooled = [];
      for (let r = 0; r + 1 < layer.image[0]; r += 2) {
        for (let c = 0; c + 1 < layer.image[1]; c += 2) {
          const sums = times(4).map((k) => weigh(layer, window(layer, values, r - 1 + (k >> 1), c - 1 + k % 2)));
          pooled.push(...activate(layer, times(layer.units).map((u) => Math.max(...sums.map((sum) => sum[u])))));
        }
      }
      return pooled;
    }
    return function (x) {
      let values = model.columns.map(([feature, state, multiplier, center]) => {
        const code = x[feature];
        if (!(Number.isInteger(code) && code >= 0 && code < model.states[feature])) return 0;  // missing: the mean, or none of the states
        return multiplier * (state < 0 ? code : +(code === state)) - center;
      });
      for (const layer of layers) values = layer.image ? convolve(layer, values) : activate(layer, weigh(layer, values.map((value, i) => [i, value])));
      return values;
    };
  }

  // Decision trees: a leaf of each adds to the score of its class, or to those of all.
  function trees(model) {
    const [feature, threshold, child, missing, root, output, values] = ["feature", "threshold", "child", "missing", "root", "output", "values"].map((name) => numbers(model[name]));
    const width = model.width;
    return function (x) {
      const sums = model.start.slice();
      root.forEach((first, tree) => {
        let node = first;
        while (feature[node] >= 0) {
          const code = x[feature[node]], here = Number.isInteger(code) && code >= 0 && code < model.states[feature[node]];
          const left = !here ? missing[node] : threshold[node] >= 0 ? code <= threshold[node] : model.sets[node][code] === "1";
          node = child[node] + (left ? 0 : 1);
        }
        const value = threshold[node] * width;
        if (output[tree] >= 0) sums[output[tree]] += values[value];
        else for (let c = 0; c < width; c++) sums[c] += values[value + c];
      });
      return sums;
    };
  }

  // A circuit: numbers are pairs [m, e] for m * 2**e with 2**31 <= m < 2**32, or m = 0; what does not fit is cut off.
  function circuit(model) {
    const [mantissa, exponent, begin, operand, slot] = ["mantissa", "exponent", "begin", "operand", "slot"].map((name) => numbers(model[name]));
    const parameters = mantissa.map((m, i) => [m, exponent[i]]);
    const zero = [0, 0], one = [HALF, -31];

    function multiply(a, b) {
      if (!a[0] || !b[0]) return zero;
      const [ah, al] = [down(a[0], 16), a[0] % 65536], [bh, bl] = [down(b[0], 16), b[0] % 65536];
      const lower = (ah * bl + al * bh) * 65536 + al * bl;
      const high = ah * bh + down(lower, 32), low = lower % WHOLE;
      return high >= HALF ? [high, a[1] + b[1] + 32] : [2 * high + +(low >= HALF), a[1] + b[1] + 31];
    }
    function add(a, b) {
      if (!b[0]) return a;
      if (!a[0]) return b;
      const [high, low] = b[1] > a[1] ? [b, a] : [a, b], distance = high[1] - low[1];
      const sum = high[0] + (distance > 31 ? 0 : down(low[0], distance));
      return sum >= WHOLE ? [down(sum, 1), high[1] + 1] : [sum, high[1]];
    }
    const above = (a, b) => !a[0] || !b[0] ? a[0] > b[0] : a[1] === b[1] ? a[0] > b[0] : a[1] > b[1];
    function share(a, total) {
      const distance = total[1] - a[1];
      return !a[0] || distance > 63 ? 0 : down(Math.floor(a[0] * 65536 / total[0]), distance);
    }

    // The value of the root, given the code of each variable; others than its states are unknown.
    function root(x) {
      const indicators = model.states.flatMap((count, variable) => {
        const code = x[variable], here = Number.isInteger(code) && code >= 0 && code < count;
        return times(count).map((state) => !here || state === code ? one : zero);
      });
      const memory = [], last = parameters.length + indicators.length;
      const value = (number) => number < parameters.length ? parameters[number] : number < last ? indicators[number - parameters.length] : memory[number - last];
      for (let step = 0; step < slot.length; step++) {
        let result = value(operand[begin[step]]);
        for (let k = begin[step] + 1; k < begin[step + 1]; k++) result = (model.product[step] === "1" ? multiply : add)(result, value(operand[k]));
        memory[slot[step]] = result;
      }
      return value(model.root);
    }

    // The posterior of the variable that is asked for in units of 2**-16, and its most probable state.
    return function (x) {
      const values = times(model.states[model.query]).map((state) => root(Object.assign(x.slice(), {[model.query]: state})));
      const total = values.reduce(add);
      const best = values.reduce((top, value, state) => above(value, values[top]) ? state : top, 0);
      return {posterior: values.map((value) => share(value, total)), best};
    };
  }

  // The code of a raw value, given as a number or a text; -1 where it is missing, or none of the states.
  function code(how, value) {
    if (value === null || value === undefined || Number.isNaN(value)) return -1;
    const text = String(value).trim();
    if (how.states) {
      const whole = /^[+-]?\d+\.0*$/.test(text) ? String(parseInt(text, 10)) : text;  // numbers lose their points
      if (how.bools) return how.states.indexOf({"1": "True", "0": "False", "true": "True", "false": "False"}[whole.toLowerCase()]);
      return how.states.includes(text) ? how.states.indexOf(text) : how.states.indexOf(whole);
    }
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) || !Number.isFinite(Number(text))) return -1;
    const number = how.single ? Math.fround(Number(text)) : Number(text);
    if (how.values) return how.values.indexOf(number);
    if (how.low !== undefined) return Number.isInteger(number) && number >= how.low && number <= how.high ? number - how.low : -1;
    if (how.step) return Math.max(0, Math.min(how.count - 1, Math.floor(number / how.step) - how.first));
    return how.cuts.filter((cut) => number >= cut).length;
  }

  function program(model) {
    const run = {tables, net, trees, circuit}[model.kind](model);
    const first = (values) => values.indexOf(Math.max(...values));
    // The scores of all classes for a row of codes, -1 where one is missing; null where the model takes complete rows only.
    const scores = (x) => model.kind === "circuit" ? run(x).posterior : run(x);
    function predict(x) {
      if (model.kind === "circuit") return run(x).best;
      const values = run(x);
      return values === null ? -1 : first(values);
    }
    // Probabilities of all classes, for people: the label does not depend on them.
    function probabilities(x) {
      const values = scores(x);
      if (values === null) return null;
      const top = Math.max(...values), circuits = model.kind === "circuit", lowest = model.lowest ?? -Infinity;
      if (circuits ? top <= 0 : top === -Infinity || top < lowest) return values.map(() => 1 / values.length);
      const weights = values.map((value) => circuits ? value : value < lowest ? 0 : Math.exp((value - top) * model.nats));
      const total = weights.reduce((a, b) => a + b, 0);
      return weights.map((weight) => weight / total);
    }
    const encode = (values) => model.encodings.map((how, i) => code(how, values[i]));
    return {
      features: model.features, classes: model.labels, scores, predict, probabilities, encode,
      predictRaw: (values) => predict(encode(values)),
    };
  }
  program.code = code;
  return program;
})();
