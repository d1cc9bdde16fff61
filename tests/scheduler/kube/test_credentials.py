"""Credentials that change or are missing for a moment are read again and never end the process."""

from __future__ import annotations

from schedspec.scheduler.kube import PODS, Client, Connection, Http, Unreachable
from tests.scheduler.kube.test_http import POD
from tests.support.fake_server import Answer, Reply, Request, serving, status


async def test_a_rotated_token_is_read_again_after_401() -> None:
    tokens = iter(["Bearer old", "Bearer new"])

    def answer(request: Request) -> Answer:
        return Reply(body=POD) if request.headers["authorization"] == "Bearer new" else status(401, "Unauthorized")

    async with serving(answer) as (server, _):
        port = server._server.sockets[0].getsockname()[1]
        http = Http(Connection("127.0.0.1", port, authorization=lambda: next(tokens)))
        await Client(http).get(PODS, "p", "ns")
        assert [request.headers["authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]
        await http.close()


async def test_a_request_waits_for_credentials_that_are_missing_for_a_moment() -> None:
    async with serving(lambda request: Reply(body=POD)) as (server, client):
        tokens: list[str | None] = [None, None, "Bearer good"]

        def authorization() -> str | None:
            token = tokens.pop(0)
            if token is None:
                raise Unreachable("service account", "no credentials", sent=False)
            return token

        at = client.http._connection
        client.http._connection = Connection(at.host, at.port, authorization=authorization)
        await client.create(PODS, POD, "ns")
        assert [request.headers["authorization"] for request in server.requests] == ["Bearer good"]
