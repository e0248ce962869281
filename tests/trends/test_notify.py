"""Notices of a report: what they say, how they are sent, and that nobody is told twice."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from email import message_from_string, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from embedding.ask.answers import Answers
from embedding.ask.config import AskConfig
from embedding.ask.questions import WatchedQuestion
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.show.notifying import NotifyConfig
from embedding.snapshots.store import LATEST
from embedding.trends.config import TrendsConfig
from embedding.web.handout.writing import Attachment
from embedding_airflow.notices.delivery import as_slack, as_text, notify
from embedding_airflow.notices.notice import Notice, NoticeLine, compose

PAGE = "http://127.0.0.1:8080/yeoron/"


@pytest.fixture(scope="module")
def answers(store):
    trends = TrendsConfig(min_count=5, min_documents=3)
    return Answers(AskConfig(snapshots=store.uri, trends=trends))


@pytest.fixture(scope="module")
def report(answers):
    return answers.report(LATEST, None)


@pytest.fixture
def hook() -> Iterator[SimpleNamespace]:
    """A webhook on loopback: what it got, and the answers it gives next."""
    place = SimpleNamespace(got=[], answers=[])

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            place.got.append(json.loads(body))
            self.send_response(place.answers.pop(0) if place.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            del args

    with ThreadingHTTPServer(("127.0.0.1", 0), Take) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place.address = f"http://127.0.0.1:{server.server_address[1]}/hook"
        yield place
        server.shutdown()


@pytest.fixture
def mailbox() -> Iterator[SimpleNamespace]:
    """A mail server on loopback: messages it took, and the code it answers RCPT with."""
    place = SimpleNamespace(got=[], code=250)

    class Take(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().decode():
                verb = line[:4].upper()
                if verb == "DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = []
                    while (part := self.rfile.readline()) != b".\r\n":
                        lines.append(
                            part.removeprefix(b".").decode() if part[:2] == b".." else part.decode()
                        )
                    place.got.append(message_from_string("".join(lines), policy=policy.default))
                code = place.code if verb == "RCPT" else 221 if verb == "QUIT" else 250
                self.wfile.write(f"{code} so\r\n".encode())
                if verb == "QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Take) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place.port = server.server_address[1]
        yield place
        server.shutdown()


def mail(mailbox: SimpleNamespace, **more: Any) -> NotifyConfig:
    given = {"smtp_host": "127.0.0.1", "smtp_port": mailbox.port, "smtp_tls": "none"}
    return NotifyConfig(email_to=("team@example.org",), **given, **more)


def test_words_above_the_threshold_and_watched_ones_are_told(report, answers):
    sure = [row.word for row in report.moved if row.q <= 0.05]
    assert sure
    quiet = next(row.word for row in reversed(report.moved) if row.q > 0.5)
    config = NotifyConfig(words=(quiet, "없는말"), rankings=("moved",))
    notice = compose(report, WatchedQuestion(config.words).answer(answers), config, PAGE)
    (stories, told), (moved, lines), (watched, seen) = notice.sections
    assert stories == "Stories"
    assert [line.word.split(" · ")[0] for line in told] == [report.stories[0].words[0].word]
    assert f"since {report.snapshot.label}" in told[0].detail
    assert (moved, [line.word for line in lines]) == ("Moved in meaning", sure)
    assert (watched, [line.word for line in seen]) == ("Watched", [quiet, "없는말"])
    now = answers.open(report.snapshot.id)
    counted = sum(documents for _, documents, _ in now.source_counts(quiet).values())
    assert f"→ {counted:,} documents" in seen[0].detail
    assert seen[1].detail == "0 → 0 documents"
    assert lines[0].address.startswith("http://127.0.0.1:8080/yeoron/word/%")
    nothing = NotifyConfig(rankings=("fallen",))
    assert not compose(report, (), nothing, PAGE)


def test_a_file_goes_with_a_mail_and_is_made_for_it_alone(report, answers, mailbox, tmp_path):
    made = []

    def attach() -> Attachment:
        made.append(1)
        return Attachment("yeoron-2020-02.pdf", "application/pdf", b"%PDF-1.4 \x00\xff")

    config = mail(mailbox, rankings=("moved",))
    assert notify(answers, LATEST, tmp_path, config, PAGE, attach).sent == ("email",)
    assert notify(answers, LATEST, tmp_path, config, PAGE, attach).sent == ()
    (message,) = mailbox.got
    (file,) = message.iter_attachments()
    assert (file.get_filename(), file.get_content_type()) == (
        "yeoron-2020-02.pdf",
        "application/pdf",
    )
    assert file.get_content() == b"%PDF-1.4 \x00\xff"
    assert "Moved in meaning" in message.get_body().get_content()
    assert len(made) == 1


def test_a_scheduled_report_goes_out_of_a_quiet_window_too(
    report, answers, mailbox, hook, tmp_path
):
    def attach() -> Attachment:
        return Attachment("yeoron-2020-02.html", "text/html", b"<p>quiet</p>")

    nothing = {"rankings": ("fallen",), "webhook": hook.address}
    config = mail(mailbox, **nothing)
    assert notify(answers, LATEST, tmp_path, config, PAGE, attach).sent == ()
    config = mail(mailbox, **nothing, attach_quiet=True)
    assert notify(answers, LATEST, tmp_path, config, PAGE).sent == ()
    assert notify(answers, LATEST, tmp_path, config, PAGE, attach).sent == ("email",)
    assert notify(answers, LATEST, tmp_path, config, PAGE, attach).sent == ()
    (message,) = mailbox.got
    assert [one.get_filename() for one in message.iter_attachments()] == ["yeoron-2020-02.html"]
    assert hook.got == []


def test_nothing_is_sent_where_the_file_cannot_be_made(report, answers, mailbox, tmp_path):
    def fail() -> Attachment:
        raise PlatformError("no Chromium.")

    config = mail(mailbox, rankings=("moved",))
    with pytest.raises(PlatformError, match="no Chromium"):
        notify(answers, LATEST, tmp_path, config, PAGE, fail)
    assert mailbox.got == []


def test_a_webhook_gets_it_once(report, answers, hook, tmp_path):
    config = NotifyConfig(webhook=hook.address, rankings=("moved",))
    hook.answers = [503]
    told = notify(answers, LATEST, tmp_path, config, PAGE)
    assert told.sent == ("webhook",)
    moved = sum(row.q <= 0.05 for row in report.moved)
    assert told.words == {"Stories": 1, "Moved in meaning": moved}
    assert len(hook.got) == 2  # a server's trouble is tried again
    assert hook.got[1]["text"].startswith("*Yeoron ")
    assert notify(answers, LATEST, tmp_path, config, PAGE).sent == ()
    assert len(hook.got) == 2


def test_mail_arrives_readable(report, answers, mailbox, tmp_path):
    told = notify(answers, LATEST, tmp_path, mail(mailbox, rankings=("moved",)), PAGE)
    assert told.sent == ("email",)
    (message,) = mailbox.got
    assert message["To"] == "team@example.org"
    words = told.words["Moved in meaning"]
    assert message["Subject"] == f"Yeoron {report.snapshot.label}: {words} words"
    body = message.get_content()
    assert report.moved[0].word in body
    assert PAGE.rstrip("/") in body


def test_what_went_out_is_not_sent_again_when_the_rest_fails(
    report, answers, mailbox, hook, tmp_path
):
    config = mail(mailbox, webhook=hook.address, rankings=("moved",))
    hook.answers = [403]
    with pytest.raises(PlatformError, match="notice by webhook: it was answered with HTTP 403"):
        notify(answers, LATEST, tmp_path, config, PAGE)
    assert (len(mailbox.got), len(hook.got)) == (1, 1)  # a refusal is not tried again
    assert notify(answers, LATEST, tmp_path, config, PAGE).sent == ("webhook",)
    assert (len(mailbox.got), len(hook.got)) == (1, 2)


def test_refusals_name_the_channel_and_no_secret(report, answers, mailbox, tmp_path):
    mailbox.code = 550
    with pytest.raises(PlatformError, match="notice by email: the mail server takes none of 1"):
        notify(answers, LATEST, tmp_path, mail(mailbox, rankings=("moved",)), PAGE)
    secret = "http://127.0.0.1:9/T000/geheim"
    with pytest.raises(PlatformError) as caught:
        notify(answers, LATEST, tmp_path, NotifyConfig(webhook=secret), PAGE)
    assert "could not be reached" in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(NotifyConfig(webhook=secret))


def test_a_hostile_word_stays_text():
    word = "<script>|*\n& http://x"
    notice = Notice("s", (("t", (NoticeLine(word, "said <b>", f"{PAGE}word/x"),)),), PAGE)
    slack = as_slack(notice)
    assert "<script>" not in slack
    assert "&lt;script&gt;¦* &amp;" in slack
    assert slack.count("|") == 1
    assert word in as_text(notice)
    long = Notice("s", (("t", tuple(NoticeLine("x" * 900, "y", PAGE) for _ in range(90))),), PAGE)
    assert len(as_slack(long)) <= 35_002


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"webhook": "http://hooks.example.org/x"}, "https:// is needed"),
        ({"email_to": ["team@example.org"]}, "email_to needs smtp_host"),
        ({"email_to": ["a@b\nBcc: c@d"], "smtp_host": "m"}, "is no mail address"),
        ({"smtp_host": "mail.example.org", "smtp_tls": "none"}, "of this machine only"),
        ({"rankings": ["moved", "lost"]}, "lost: accepted are moved, born, risen, fallen"),
    ],
)
def test_settings_that_cannot_work_are_a_sentence(given, said):
    with pytest.raises(ConfigError, match=said):
        validate(NotifyConfig, given, "notify")
