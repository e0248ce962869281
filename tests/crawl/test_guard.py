import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.fetcher import AddressGuard, is_public
from embedding.kernel.errors import FetchError


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b:1::7f00:1",
        "fec0::1",
        "192.0.0.8",
        "not an address",
    ],
)
def test_private_addresses_are_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_known(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(network="10.0.0.0/8"))
def test_a_whole_private_network(address: object) -> None:
    assert not is_public(str(address))
    assert not is_public(f"::ffff:{address}")


async def test_one_private_address_among_public_ones_is_enough() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["8.8.8.8", "127.0.0.1"]

    with pytest.raises(FetchError) as caught:
        await AddressGuard((), resolve).addresses("example.org", 80)
    assert caught.value.reason == "private_address"
    assert await AddressGuard(("example.org:80",), resolve).addresses("example.org", 80)
    with pytest.raises(FetchError):
        await AddressGuard(("example.org:80",), resolve).addresses("example.org", 81)


async def test_an_exception_without_a_port_is_one_for_the_usual_ports() -> None:
    """On loopback the others are the platform's own."""

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    guard = AddressGuard(("Intranet.example", "[::1]:8080"), resolve)
    assert [guard.trusts("intranet.example", port) for port in (80, 443)] == [True, True]
    assert await guard.addresses("intranet.example", 443)
    for port in (2222, 5000, 8815):
        with pytest.raises(FetchError, match=f"as in intranet.example:{port}"):
            await guard.addresses("intranet.example", port)
    assert guard.trusts("::1", 8080)
    assert not guard.trusts("::1", 80)


async def test_a_name_that_does_not_resolve() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(FetchError) as caught:
        await AddressGuard((), resolve).addresses("nowhere.example", 80)
    assert caught.value.reason == "dns"
    assert caught.value.retry_after is not None


@pytest.mark.parametrize("port", [0, 22, 25, 587, 1023])
async def test_ports_of_other_services_are_not_asked(port: int) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["8.8.8.8"]

    with pytest.raises(FetchError) as caught:
        await AddressGuard((), resolve).addresses("example.org", port)
    assert caught.value.reason == "port"
    with pytest.raises(FetchError, match="another service"):
        await AddressGuard((), resolve).judge_named("example.org", port)
    for usual in (80, 443, 1024, 8080, 8443):
        assert await AddressGuard((), resolve).addresses("example.org", usual)


def test_an_exception_is_for_sources_that_are_exceptions() -> None:
    guard = AddressGuard(("intranet.example", "10.0.0.7:8080", "[::1]:8080"))
    inside = ("http://intranet.example/a", "https://intranet.example/", "http://10.0.0.7:8080/b")
    for address in (*inside, "http://[::1]:8080/"):
        guard.check_exception(address, "http://intranet.example/list")
        guard.check_exception(address, "http://10.0.0.7:8080/list")
        guard.check_exception(address, "")
        with pytest.raises(FetchError) as caught:
            guard.check_exception(address, "https://press.example/list")
        assert caught.value.reason == "private_address"
    guard.check_exception("https://other.example/", "https://press.example/list")
    with pytest.raises(FetchError):
        guard.check_exception("http://intranet.example/", "http://10.0.0.7:9999/list")
    guard.check_exception("http://intranet.example:99999/", "https://press.example/list")
