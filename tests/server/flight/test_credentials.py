"""Files of secrets: each that cannot work is refused in a sentence, before a port opens."""

from __future__ import annotations

import pytest
from certificates import DAY, make_certificate, make_token

from embedding.kernel.errors import ConfigError
from embedding.server.config import ServerConfig
from embedding.server.flight.credentials import read_credentials


def read(**given):
    return read_credentials(ServerConfig(**given))


def test_without_files_there_is_nothing_to_show():
    assert read() == type(read())()


def test_a_pair_that_fits_is_read_with_nothing_to_say_about_it(tmp_path):
    cert, key = make_certificate(tmp_path)
    token = make_token(tmp_path)
    found = read(tls_cert=cert, tls_key=key, token_file=token, tls_client_ca=cert)
    assert found.token == "secret-word"
    assert found.pair == (cert.read_bytes(), key.read_bytes())
    assert found.client_ca == cert.read_bytes()
    assert found.notes == ()


@pytest.mark.parametrize("setting", ["token_file", "tls_cert", "tls_key", "tls_client_ca"])
def test_a_file_that_is_not_there_is_named(tmp_path, setting):
    cert, key = make_certificate(tmp_path)
    files = {"tls_cert": cert, "tls_key": key, setting: tmp_path / "none"}
    with pytest.raises(ConfigError, match=f"{setting} .*none: No such file"):
        read(**files)
    with pytest.raises(ConfigError, match=f"{setting} .*: Is a directory"):
        read(**{**files, setting: tmp_path})


def test_a_secret_that_others_may_read_is_none(tmp_path):
    cert, key = make_certificate(tmp_path)
    token = make_token(tmp_path)
    for path, files in (
        (token, {"token_file": token}),
        (key, {"tls_cert": cert, "tls_key": key}),
    ):
        for mode in (0o604, 0o602, 0o644):
            path.chmod(mode)
            with pytest.raises(ConfigError, match="every user of this machine"):
                read(**files)
        path.chmod(0o640)
        read(**files)


def test_certificate_and_key_must_belong_together_and_be_what_they_say(tmp_path):
    cert, key = make_certificate(tmp_path)
    _, other = make_certificate(tmp_path, "other")
    with pytest.raises(ConfigError, match="not the key of the certificate"):
        read(tls_cert=cert, tls_key=other)
    with pytest.raises(ConfigError, match="no certificate in PEM"):
        read(tls_cert=key, tls_key=key)
    with pytest.raises(ConfigError, match="no private key in PEM"):
        read(tls_cert=cert, tls_key=cert)
    with pytest.raises(ConfigError, match="no certificate in PEM"):
        read(tls_cert=cert, tls_key=key, tls_client_ca=key)
    locked_cert, locked = make_certificate(tmp_path, "locked", passphrase=b"pass")
    with pytest.raises(ConfigError, match="encrypted"):
        read(tls_cert=locked_cert, tls_key=locked)


@pytest.mark.parametrize(
    ("made", "host", "said"),
    [
        ({"last": -DAY / 2}, "127.0.0.1", "expired on"),
        ({"last": 3 * DAY}, "127.0.0.1", "expires on"),
        ({"first": DAY}, "127.0.0.1", "not valid before"),
        ({"names": ("example.org",)}, "127.0.0.1", "does not name 127.0.0.1"),
        ({"names": ()}, "example.org", "does not name example.org"),
        ({"names": ("*.example.org",)}, "a.b.example.org", "does not name"),
        ({"names": ("*.example.org",)}, "node.example.org", None),
        ({"names": ("Example.org",)}, "example.org", None),
        ({"names": ("192.0.2.1",)}, "0.0.0.0", None),
        ({"names": ("localhost",)}, "127.0.0.1", None),
        ({}, "::1", None),
    ],
)
def test_what_clients_will_object_to_is_said_and_served_all_the_same(tmp_path, made, host, said):
    cert, key = make_certificate(tmp_path, **made)
    token = make_token(tmp_path)
    notes = read(tls_cert=cert, tls_key=key, token_file=token, host=host).notes
    if said is None:
        assert notes == ()
    else:
        assert any(said in note and str(cert) in note for note in notes)
