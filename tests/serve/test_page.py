"""The pages for people, in a browser."""

from __future__ import annotations

import csv
import io
import json
import shutil
import threading
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from starlette.types import Receive, Scope, Send

from lightdxml import LightDXML, Vocabulary
from lightdxml.data.vocabulary import Concept
from lightdxml.serve.app import create_app
from lightdxml.serve.server import Server, listen
from lightdxml.serve.service import ServeOptions
from tests.serve.browser import Page, chromium
from tests.support.serving import Running, running

TOKEN = "a-long-enough-token"
IMAGE = "<img src=x onerror=alert(1)>"
# Names of labels, and what texts about them say.
LABELS = {
    "urn:cat": ("cat", "purring cat"),
    "urn:dog": ("dog", "barking dog"),
    "urn:image": (IMAGE, "broken picture"),
    "urn:greeting": ('say "hi", now', "loud greeting"),
    "urn:book": ("كتاب", "thick book"),
}
CAT_AND_DOG = "A purring cat, a dog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a hierarchy, notations and names that are no good HTML."""
    rows = [*((uri,) for uri in LABELS), *combinations(LABELS, 2)] * 5
    texts = [" and a ".join(LABELS[uri][1] for uri in row) for row in rows]
    concepts = [
        Concept(uri, {"en": (name,)}, f"5{i}", ("urn:thing",)) for i, (uri, (name, _)) in enumerate(LABELS.items())
    ]
    above = [Concept("urn:thing", {"en": ("<b>thing</b>",)}, "5", ("urn:all",)), Concept("urn:all", {"en": ("all",)})]
    found = tmp_path_factory.mktemp("models") / "things"
    model = LightDXML("fast", min_df=1)
    labels = [list(row) for row in rows]
    model.fit(texts, labels, vocabulary=Vocabulary(above + concepts), keep_training_data=True).save(found)
    return found


@pytest.fixture(scope="module")
def server(folder: Path, plain_folder: Path) -> Iterator[Running]:
    with running({"things": folder, "pets": plain_folder}) as one:
        yield one


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Running]:
    """A server that wants a token, and takes short texts only."""
    with running({"things": folder}, tokens=(TOKEN,), max_body=1000) as one:
        yield one


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def tab(browser: Page) -> Iterator[Page]:
    """A browser. Whatever a test does in it, no page asks another server, or has an error of its own."""
    browser.emulate()
    browser.requests()
    browser.errors()
    yield browser
    assert {urlsplit(url).hostname for url in browser.requests() if url.startswith("http")} == {"127.0.0.1"}
    refused = "the server responded with a status of"
    assert [error for error in browser.errors() if refused not in error] == []


@pytest.fixture
def page(tab: Page, server: Running) -> Page:
    """The page, ready for a text."""
    tab.open(f"{server.url}/")
    tab.until_status("There is no text yet.")
    return tab


@pytest.fixture
def classroom(tab: Page, folder: Path, tmp_path: Path) -> Iterator[Page]:
    """The page of a server whose model may learn."""
    shutil.copytree(folder, tmp_path / "things")
    with running({"things": tmp_path / "things"}, allow_learn=True) as server:
        tab.open(f"{server.url}/")
        tab.until_status("There is no text yet.")
        yield tab


def point_at(page: Page, selector: str) -> None:
    ActionChains(page.driver, duration=0).move_to_element(page.one(selector)).perform()


def test_typing_a_text_gives_suggestions_with_probability_notation_and_broader_concepts(page: Page) -> None:
    page.one("#text").send_keys(CAT_AND_DOG)
    page.until_status("2 suggestions")
    assert page.names() == ["cat", "dog"]
    assert page.texts(".notation") == ["50", "51"]
    assert page.texts(".path") == ["all › <b>thing</b>"] * 2
    shares = [float(one) for one in page.texts(".number")]
    assert all(0.9 < share <= 1 for share in shares)
    assert page.run("return document.querySelector('.bar span').style.width").endswith("%")


def test_ctrl_enter_does_not_wait_for_the_end_of_typing(page: Page) -> None:
    page.run("window.setTimeout = () => 0")
    page.one("#text").send_keys(CAT_AND_DOG)
    assert page.names() == []
    page.one("#text").send_keys(Keys.CONTROL, Keys.ENTER)
    page.until_status("2 suggestions")


def test_the_suggestion_under_the_pointer_highlights_its_words_after_emoji(page: Page) -> None:
    text = f"😀🐈‍⬛ «\n{CAT_AND_DOG}"
    page.suggest(text)
    point_at(page, "#suggestions > li:nth-child(1)")
    page.until(page.marks)
    assert page.marks() == [(text.index(word), word, "for") for word in ("purring", "cat")]
    assert page.text("#backdrop") == f"{text}\n"
    assert [one.split()[0] for one in page.texts("#suggestions > li:first-child .for")] == ["cat", "purring"]
    point_at(page, "#suggestions > li:nth-child(2)")
    page.until(lambda: page.marks() == [(text.index("dog"), "dog", "for")])
    point_at(page, "h1")
    page.until(lambda: page.marks() == [])


def test_words_for_and_against_have_colors_by_strength_and_overlaps_add_up(page: Page) -> None:
    found = page.driver.execute_async_script(
        """
        const done = arguments[0], target = document.createElement("div");
        const words = [
          {adds: 0.4, positions: [[2, 5], [8, 11]]},
          {adds: 0.4, positions: [[2, 7]]},
          {adds: -0.2, positions: [[12, 15]]},
          {adds: 0.01, positions: [[0, 1]]},
          {adds: 0, positions: [[1, 2]]},
        ];
        const {paint} = await import(new URL("static/highlights.js", location.href));
        paint(target, "😀 cat x cat dog", words);
        const strength = (mark) => Number(mark.style.getPropertyValue("--strength"));
        done([...target.querySelectorAll("mark")].map((one) => [one.textContent, one.className, strength(one)]));
        """
    )
    assert found == [["cat", "for", 1], [" x", "for", 0.5], ["cat", "for", 0.5], ["dog", "against", 0.25]]


def test_the_highlights_lie_exactly_behind_the_text(page: Page) -> None:
    page.suggest("\n".join([f"{CAT_AND_DOG} {'word ' * i}{'long' * i}\tكتاب" for i in range(40)]) + "\n")
    same = """
        const [text, backdrop] = ["text", "backdrop"].map((id) => document.getElementById(id));
        const box = document.getElementById("box");
        const scrolls = (one) => one.scrollHeight > one.clientHeight;
        const size = (one) => JSON.stringify([one.getBoundingClientRect(), one.scrollHeight, one.clientWidth]);
        // Each paragraph has a direction of its own (unicode-bidi: plaintext).
        const mayDiffer = /color|appearance|cursor|pointer-events|^direction/;
        const [one, other] = [text, backdrop].map((one) => getComputedStyle(one));
        const differ = [...one].filter((name) => one[name] !== other[name] && !mayDiffer.test(name));
        return [size(text) === size(backdrop), differ, !scrolls(text), scrolls(box)];
    """
    assert page.run(same) == [True, [], True, True]
    page.emulate(width=420)
    assert page.run(same) == [True, [], True, True]
    page.suggest("كتاب cat\n" * 40)
    assert page.run(same) == [True, [], True, True]
    page.run("document.getElementById('box').scrollTop = 1e6")
    page.one("#suggestions .suggestion").send_keys(Keys.ENTER)
    page.until(lambda: page.run("return document.getElementById('box').scrollTop") == 0)


def test_a_pinned_highlight_stays_until_it_is_released(page: Page) -> None:
    page.suggest(CAT_AND_DOG)
    cat = [(2, "purring", "for"), (10, "cat", "for")]
    page.one("#suggestions .suggestion").click()
    point_at(page, "h1")
    page.run("document.activeElement.blur()")
    page.until(lambda: page.marks() == cat)
    assert page.one("#suggestions .suggestion").get_attribute("aria-pressed") == "true"
    page.suggest(f"{CAT_AND_DOG} xyz")
    assert page.marks() == cat
    page.one("#suggestions .suggestion").send_keys(Keys.ENTER)
    page.run("document.activeElement.blur()")
    page.until(lambda: page.marks() == [])


def test_arrow_keys_move_within_the_suggestions_and_highlight(page: Page) -> None:
    page.suggest(CAT_AND_DOG)
    assert [one.get_attribute("tabindex") for one in page.all(".suggestion")] == ["0", "-1"]
    page.one("[data-copy=csv]").send_keys(Keys.TAB)
    page.until(lambda: [covered for _, covered, _ in page.marks()] == ["purring", "cat"])
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    page.until(lambda: [covered for _, covered, _ in page.marks()] == ["dog"])
    page.driver.switch_to.active_element.send_keys(Keys.HOME)
    page.until(lambda: [covered for _, covered, _ in page.marks()] == ["purring", "cat"])


def test_highlights_of_an_earlier_text_are_never_shown_in_a_later_one(page: Page) -> None:
    page.run(
        """
        const ask = window.fetch;
        window.aborted = 0;
        window.fetch = async (url, init) => {
          if (!String(url).endsWith("/explain")) return ask(url, init);
          init.signal.addEventListener("abort", () => window.aborted++);
          const answer = await ask(url, init);
          await new Promise((resolve) => setTimeout(resolve, 400));
          init.signal.throwIfAborted();
          return answer;
        };
        """
    )
    page.write(CAT_AND_DOG)
    page.until_status("2 suggestions")
    page.one("#suggestions .suggestion").send_keys(Keys.ENTER)
    page.write(f"Look: {CAT_AND_DOG}")
    assert page.run("return window.aborted") == 1
    page.until(page.marks)
    assert page.marks() == [(8, "purring", "for"), (16, "cat", "for")]


def test_sliders_change_the_suggestions_show_their_values_and_are_kept(page: Page) -> None:
    assert len(page.suggest(f"{CAT_AND_DOG} and a picture")) == len(LABELS)
    page.move("k", 3)
    page.until(lambda: set(page.names()) == {"cat", "dog", IMAGE})
    page.move("threshold", 0.99)
    page.until(lambda: page.names() == ["cat"])
    page.run("const ask = window.fetch; window.fetch = (url, init) => ((window.sent = init.body), ask(url, init))")
    page.move("tail", 0.5)
    page.until(lambda: page.run("return window.sent"))
    assert json.loads(page.run("return window.sent"))["tail"] == 0.5
    assert page.texts("output") == ["3", "0.99", "0.50"]
    page.until(lambda: "tail=0.5" in page.driver.current_url)
    page.driver.refresh()
    page.until_status("There is no text yet.")
    assert page.texts("output") == ["3", "0.99", "0.50"]


def test_another_model_can_be_chosen(page: Page) -> None:
    page.suggest(CAT_AND_DOG)
    page.one("#model").send_keys("pets")
    page.until(lambda: page.text("#about").startswith("pets: 3 labels"))
    page.until(lambda: not page.all(".notation"))
    assert "model=pets" in page.driver.current_url


def copied(page: Page, kind: str, clipboard: str = "allowed") -> str:
    """Copy the suggestions for a text, and return what was copied."""
    page.move("threshold", 0.5)
    page.suggest("a loud greeting a cat")
    page.run(
        """
        const write = {
          allowed: (text) => { window.copied = text; return Promise.resolve(); },
          forbidden: () => Promise.reject(new Error("no")),
        }[arguments[0]];
        Object.defineProperty(navigator, "clipboard", {value: write ? {writeText: write} : undefined});
        document.addEventListener("copy", () => (window.copied = document.activeElement.value));
        """,
        clipboard,
    )
    page.one(f"[data-copy={kind}]").click()
    page.until(lambda: page.text("#copied") == "Copied 2 labels.")
    return str(page.run("return window.copied"))


@pytest.mark.parametrize(("kind", "expected"), [("uris", "urn:greeting\nurn:cat"), ("labels", 'say "hi", now\ncat')])
def test_uris_and_labels_are_copied_line_by_line(page: Page, kind: str, expected: str) -> None:
    assert copied(page, kind) == expected


@pytest.mark.parametrize("clipboard", ["allowed", "forbidden", "missing"])
def test_suggestions_are_copied_as_csv_even_without_a_clipboard(page: Page, clipboard: str) -> None:
    head, *rows = csv.reader(io.StringIO(copied(page, "csv", clipboard)))
    assert head == ["uri", "label", "notation", "score"]
    assert [row[:3] for row in rows] == [["urn:greeting", 'say "hi", now', "53"], ["urn:cat", "cat", "50"]]
    assert all(0.5 < float(row[3]) <= 1 for row in rows)


def test_a_text_file_becomes_the_text(page: Page, tmp_path: Path) -> None:
    (tmp_path / "cat.TXT").write_text("\ufeffA purring cat 😀", encoding="utf-8")
    page.one("#file").send_keys(str(tmp_path / "cat.TXT"))
    page.until(lambda: page.names() == ["cat"])
    assert page.run("return document.getElementById('text').value") == "A purring cat 😀"
    (tmp_path / "cat.pdf").write_bytes(b"%PDF")
    page.one("#file").send_keys(str(tmp_path / "cat.pdf"))
    page.until(lambda: page.text("#error") == "Choose a file that ends with .txt or .jsonl.")


def test_a_dropped_file_becomes_the_text(page: Page) -> None:
    page.run(
        """
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(["a barking dog"], "dog.txt"));
        document.body.dispatchEvent(new DragEvent("drop", {dataTransfer, bubbles: true, cancelable: true}));
        """
    )
    page.until(lambda: page.names() == ["dog"])


def test_documents_of_a_file_get_labels_in_a_table_and_as_a_download(page: Page, tmp_path: Path) -> None:
    words = [LABELS[uri][1] for uri in ("urn:cat", "urn:image")]
    documents = [json.dumps({"id": f"<i>{i}</i>", "text": words[i % 2] + " xyz" * (i % 3) * 300}) for i in range(250)]
    lines = [*documents[:2], "no JSON", "", " \t", *documents[2:]]
    (tmp_path / "many.jsonl").write_text("\n".join(lines), encoding="utf-8")
    page.move("threshold", 0.5)
    page.one("#file").send_keys(str(tmp_path / "many.jsonl"))
    page.until(lambda: page.one("#download").is_displayed())
    assert page.text("#status") == "many.jsonl: 251 documents"
    assert page.run("return document.getElementById('progress').value") == 1
    rows = page.texts("#rows tr")
    assert len(rows) == 100
    assert rows[0].startswith("<i>0</i> purring cat")
    assert rows[1].startswith("<i>1</i> broken picture")
    assert IMAGE in rows[1]
    assert "the line is not JSON" in rows[2]
    assert page.one("#more").is_displayed()
    page.one("#download").click()
    result = page.downloads / "many.labels.jsonl"
    page.until(result.exists)
    answers = [json.loads(line) for line in result.read_text(encoding="utf-8").splitlines()]
    assert [one.get("id") for one in answers] == ["<i>0</i>", "<i>1</i>", None, *(f"<i>{i}</i>" for i in range(2, 250))]
    assert [label["uri"] for label in answers[3]["labels"]] == ["urn:cat"]


def test_suggestions_for_a_text_replace_the_table_of_a_file(page: Page, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"text": "a cat"}\n', encoding="utf-8")
    page.one("#file").send_keys(str(tmp_path / "one.jsonl"))
    page.until_status("one.jsonl: 1 document")
    assert page.suggest("a barking dog") == ["dog"]
    assert not page.one("#documents").is_displayed()


def test_names_and_texts_are_never_read_as_html(page: Page) -> None:
    assert page.suggest(f"{IMAGE} <b>broken</b> picture <script>alert(1)</script>")[0] == IMAGE
    page.one("#suggestions .suggestion").send_keys(Keys.ENTER)
    page.until(page.marks)
    assert page.all("img, b, main script, i") == []
    assert page.text("#backdrop").startswith(IMAGE)
    assert page.run("return getComputedStyle(document.querySelector('.name bdi')).unicodeBidi") == "isolate"


def test_the_page_says_why_there_are_no_suggestions(page: Page) -> None:
    page.write("qwertz")
    page.until_status("The model knows none of these words.")
    assert not page.one("#list").is_displayed()
    page.move("threshold", 1)
    page.write("and")
    page.until_status("No label reaches the threshold.")
    page.one("#clear").click()
    page.until_status("There is no text yet.")


def test_while_models_are_loading_the_page_says_so_and_waits(
    tab: Page, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.service.models, "_served", {})
    tab.open(f"{server.url}/")
    tab.until_status("The models are loading.")
    monkeypatch.undo()
    tab.until_status("There is no text yet.")


def test_a_token_is_asked_for_until_it_is_right_and_kept_for_the_session(tab: Page, guarded: Running) -> None:
    tab.open(f"{guarded.url}/")
    tab.until(lambda: tab.text("#token-reason") == "This server needs a token.")
    tab.one("#token").send_keys("Wrong Ł", Keys.ENTER)
    tab.until(lambda: tab.text("#token-reason").startswith("The token is wrong."))
    tab.one("#token").send_keys(TOKEN, Keys.ENTER)
    tab.until_status("There is no text yet.")
    assert tab.all("dialog") == []
    assert tab.suggest(CAT_AND_DOG) == ["cat", "dog"]
    tab.write("long " * 300)
    tab.until(lambda: tab.text("#error") == "The body has more than 1,000 bytes: send less at a time.")
    tab.open(f"{guarded.url}/v1/ui/")
    tab.until(lambda: tab.all("details"))
    assert 'Bearer $TOKEN"' in tab.text(".curl")
    tab.run("sessionStorage.clear()")


def test_without_a_token_the_page_says_what_is_missing(tab: Page, guarded: Running) -> None:
    tab.open(f"{guarded.url}/")
    tab.until(lambda: tab.all("dialog"))
    tab.one("#token").send_keys(Keys.ESCAPE)
    tab.until(lambda: tab.text("#error") == "This server needs a token.")


def test_the_api_page_lists_all_operations_and_sends_requests(tab: Page, server: Running) -> None:
    tab.open(f"{server.url}/v1/ui/")
    tab.until(lambda: tab.all("details"))
    paths = server.get("/v1/openapi.json").json()["paths"]
    operations = [f"{method.upper()} {path}" for path, item in paths.items() for method in item]
    heads = tab.run(
        "return [...document.querySelectorAll('summary')].map((one) => `${one.children[0].textContent}"
        " ${one.children[1].textContent}`)"
    )
    assert sorted(heads) == sorted(operations)
    assert set(tab.texts("h2")) == {"Annif", "lightdxml", "Open Inference Protocol"}
    statuses = tab.driver.execute_async_script(
        """
        const done = arguments[0];
        const forms = [...document.querySelectorAll("form")];
        for (const form of forms) form.requestSubmit();
        const answers = () => [...document.querySelectorAll(".answer")].map((one) => one.textContent);
        const timer = setInterval(() => {
          if (answers().some((one) => !/^[0-9]/.test(one))) return;
          clearInterval(timer);
          done(answers().map((one) => one.slice(0, 3)));
        }, 20);
        """
    )
    # Only `learn` is refused.
    assert dict(zip(heads, statuses, strict=True)) == {one: "403" if one.endswith("/learn") else "200" for one in heads}


def test_the_api_page_describes_fields_and_its_commands_follow_the_form(tab: Page, server: Running) -> None:
    tab.open(f"{server.url}/v1/ui/")
    tab.until(lambda: tab.all("details"))
    at = tab.run(
        "return [...document.querySelectorAll('summary code')].findIndex("
        "(one) => one.textContent === '/api/models/{model}/suggest')"
    )
    details = tab.all("details")[at]
    details.find_element("css selector", "summary").click()
    shown = details.text
    assert "k integer (1 to 1000) 10" in shown
    assert 'threshold number (0 to 1) or "auto" or "micro-f1"' in shown
    assert "labels[].broader[].uri string" in shown
    assert "429 Too many documents are waiting." in shown
    body = details.find_element("css selector", "textarea")
    body.clear()
    body.send_keys('{"text": "it\'s a dog", "k": 1}')
    command = details.find_element("css selector", ".curl").text
    assert f"curl -X POST '{server.url}/api/models/things/suggest'" in command
    assert "it'\\''s a dog" in command
    details.find_element("css selector", "form button").click()
    answer = details.find_element("css selector", ".answer")
    tab.until(lambda: answer.text.startswith("200") and '"uri": "urn:dog"' in answer.text)


def test_pages_work_below_a_path_of_a_proxy(tab: Page, folder: Path) -> None:
    app, service = create_app({"things": folder}, ServeOptions(access_log=False))

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["path"].startswith("/labels/")
        await app({**scope, "path": scope["path"].removeprefix("/labels")}, receive, send)

    listener, ready = listen("127.0.0.1", 0), threading.Event()
    server = Server(proxy, service, listener, on_ready=ready.set)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(60)
        tab.open(f"http://127.0.0.1:{listener.getsockname()[1]}/labels/")
        assert tab.suggest(CAT_AND_DOG) == ["cat", "dog"]
        tab.one("a[href='v1/ui/']").click()
        tab.until(lambda: tab.all("details"))
        assert "/labels/v1/" in tab.text(".curl")
        assert tab.errors() == []
    finally:
        server.stop()
        thread.join(60)
        listener.close()


@pytest.mark.parametrize("path", ["/", "/v1/ui/"])
def test_on_a_phone_nothing_is_wider_than_the_screen(tab: Page, server: Running, path: str) -> None:
    tab.emulate(width=360, height=740)
    tab.open(server.url + path)
    if path == "/":
        tab.suggest(f"{CAT_AND_DOG} {'x' * 500}")
        tab.one("#suggestions .suggestion").send_keys(Keys.ENTER)
    else:
        tab.until(lambda: tab.all("details"))
        tab.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert tab.run("return document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("path", ["/", "/v1/ui/"])
def test_pages_are_dark_if_the_user_prefers_it(tab: Page, server: Running, path: str) -> None:
    def lightness() -> float:
        color: str = tab.run("return getComputedStyle(document.querySelector('header')).backgroundColor")
        return sum(map(float, color.removeprefix("rgb(").removesuffix(")").split(","))) / 3

    tab.open(server.url + path)
    assert lightness() > 200
    tab.emulate(scheme="dark")
    assert lightness() < 60


def test_pages_work_without_any_error_in_the_console(page: Page, server: Running) -> None:
    page.suggest(CAT_AND_DOG)
    page.open(f"{server.url}/v1/ui/")
    page.until(lambda: page.all("details"))
    assert page.errors() == []


def test_all_inputs_have_labels(page: Page, server: Running) -> None:
    script = (
        "return [...document.querySelectorAll('input, select, textarea')].filter((one) => !one.labels.length).length"
    )
    assert page.run(script) == 0
    page.open(f"{server.url}/v1/ui/")
    page.until(lambda: page.all("details"))
    assert page.run(script) == 0


def pressed(page: Page, kind: str) -> list[str | None]:
    return [one.get_attribute("aria-pressed") for one in page.all(f"#suggestions .{kind}")]


def learn(page: Page) -> str:
    """Let the model learn; return what the page says once it has suggested again."""
    page.one("#learn").click()
    page.until(lambda: page.text("#learned").startswith("Learned"))
    page.until(lambda: page.all("#suggestions .fact") and not page.all("#suggestions[aria-busy]"))
    return page.text("#learned")


def test_a_person_accepts_rejects_and_adds_labels_and_sees_what_the_model_learned(classroom: Page) -> None:
    assert not classroom.one("#teach").is_displayed()
    assert classroom.suggest("A purring cat, a picture of a horse") == ["cat", IMAGE]
    before = float(classroom.texts(".number")[1])
    accept, reject = (classroom.all(f"#suggestions .{kind}") for kind in ("accept", "reject"))
    assert accept[1].get_attribute("aria-label") == f"Accept {IMAGE}"
    accept[1].click()
    assert (pressed(classroom, "accept"), pressed(classroom, "reject")) == (["false", "true"], ["false", "false"])
    reject[1].click()
    accept[0].click()
    assert (pressed(classroom, "accept"), pressed(classroom, "reject")) == (["true", "false"], ["false", "true"])
    classroom.one("#label").send_keys(" <i>horse</i> ", Keys.ENTER, "mistake", Keys.ENTER)
    assert classroom.texts("#added bdi") == ["<i>horse</i>", "mistake"]
    classroom.one("#added [aria-label='Remove mistake']").click()
    assert learn(classroom).startswith("Learned: 3 labels trained again (1 new) in "), (
        "two were named, one was rejected"
    )
    assert set(classroom.names()[:2]) == {"cat", "<i>horse</i>"}
    assert f"was {before:.2f}" in classroom.texts(".was")
    assert classroom.text("#about") == "things: 8 labels, 76 training documents"
    assert classroom.texts("#added li") == []
    assert set(pressed(classroom, "accept")) == {"false"}
    assert classroom.all("i") == []


def test_what_is_said_about_a_text_is_not_kept_for_another_one(classroom: Page) -> None:
    classroom.suggest(CAT_AND_DOG)
    classroom.all("#suggestions .accept")[0].click()
    classroom.move("k", 1)
    classroom.until(lambda: classroom.names() == ["cat"])
    assert pressed(classroom, "accept") == ["true"], "the text is the same"
    classroom.one("#label").send_keys("horse", Keys.ENTER)
    classroom.suggest(f"{CAT_AND_DOG} sleep")
    assert pressed(classroom, "accept") == ["false"]
    assert classroom.texts("#added li") == []
    classroom.one("#learn").click()
    assert classroom.text("#learned") == "Accept or add a label first."


def test_suggestions_are_judged_with_the_keyboard(classroom: Page) -> None:
    classroom.suggest(CAT_AND_DOG)
    classroom.one("[data-copy=csv]").send_keys(Keys.TAB)
    for key in (Keys.TAB, Keys.ENTER, Keys.ARROW_DOWN, Keys.SPACE):
        classroom.driver.switch_to.active_element.send_keys(key)
    assert pressed(classroom, "accept") == ["true", "true"]
    classroom.driver.switch_to.active_element.send_keys(Keys.TAB)
    classroom.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert (pressed(classroom, "accept"), pressed(classroom, "reject")) == (["true", "false"], ["false", "true"])
    classroom.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert classroom.driver.switch_to.active_element.get_attribute("id") == "label"


def test_a_text_of_unknown_words_can_be_taught_with_labels_that_are_offered(classroom: Page) -> None:
    classroom.write("qwertz")
    classroom.until_status("The model knows none of these words.")
    classroom.one("#label").send_keys("dog", Keys.ENTER)
    assert classroom.texts("#added bdi") == ["dog"]
    assert learn(classroom).startswith("Learned: 1 label trained again in ")
    assert classroom.names()[0] == "dog"
    # A name that is suggested is accepted, and not added.
    classroom.one("#label").send_keys("dog", Keys.ENTER)
    assert pressed(classroom, "accept")[0] == "true"
    assert classroom.texts("#added li") == []
    offered = "return [...document.querySelectorAll('option')].map((one) => one.value)"
    classroom.until(lambda: "dog" in classroom.run(offered))


def test_what_can_be_learned_fits_on_a_phone_and_has_labels(classroom: Page) -> None:
    classroom.emulate(width=360, height=740)
    classroom.suggest(CAT_AND_DOG)
    classroom.one("#label").send_keys("x" * 300, Keys.ENTER)
    assert classroom.run("return document.documentElement.scrollWidth") <= 360
    script = "return [...document.querySelectorAll('input, select, textarea')].every((one) => one.labels.length)"
    assert classroom.run(script)


def test_nothing_is_said_about_learning_where_it_is_not_allowed(page: Page) -> None:
    page.suggest(CAT_AND_DOG)
    assert not page.one("#teach").is_displayed()
    assert page.all(".judge") == []
