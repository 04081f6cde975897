"""The app on a real server in a thread, and requests whose headers the test chooses."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

from tinybayes.serve.app import link_of, listening, make_app, make_server

TOKEN = "a-token-that-only-the-page-knows"


@contextmanager
def serving(directory, host="127.0.0.1"):
    """Serve a directory for the length of a block; give the link that opens it."""
    import uvicorn

    with listening(host, 0) as place:
        server = make_server(uvicorn, make_app(directory, host=host, token=TOKEN))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield link_of(place, host, TOKEN)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


class Client:
    """Sends requests as they are: nothing is added but the token, and nothing mended."""

    def __init__(self, address, token=TOKEN):
        self.place, self.token = urlsplit(address).netloc, token

    def send(self, path, method="GET", headers=None, body=None, **parameters):
        connection = http.client.HTTPConnection(self.place, timeout=60)
        target = path + ("?" + urlencode(parameters) if parameters else "")
        own = {"X-Tinybayes-Token": self.token} if self.token is not None else {}
        given = {"Host": self.place, **own, **(headers or {})}
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            for one in value if isinstance(value, list) else [value]:
                connection.putheader(name, one)
        connection.endheaders()
        if body is not None:
            connection.send(body)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def get(self, path, **parameters):
        answer = self.send(path, **parameters)
        assert answer.status == 200, answer.text
        return json.loads(answer.text)


def write_progress(directory, **more):
    """Write progress.json as a running search of this process would."""
    import os

    said = {"runs": 12, "seconds": 30.0, "seconds_left": 90.0, "phase": "searching", "pid": os.getpid()}
    said |= {"host": os.uname().nodename, "updated": time.time(), "best": None}
    part = directory / ".progress"
    part.write_text(json.dumps(said | more))
    part.replace(directory / "progress.json")
