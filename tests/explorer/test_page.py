"""The page in a real browser: it draws, it answers to mouse and keys, it draws little, and its console stays empty."""

import pytest

import pullback as torch
from pullback.insight.explorer.grouped import boxes_of
from pullback.insight.explorer.layout import arrange, text_width
from pullback.insight.report import size_text
from tests.explorer import geometry, programs

pytestmark = pytest.mark.browser

COUNT = """(() => {
  window.drawn = {boxes: 0, lines: 0};
  const pen = CanvasRenderingContext2D;
  const what = {fillRect: "boxes", roundRect: "boxes", moveTo: "lines"};
  for (const [type, name] of [[pen, "fillRect"], [pen, "roundRect"], [Path2D, "moveTo"]]) {
    const own = type.prototype[name];
    type.prototype[name] = function (...given) { drawn[what[name]]++; return own.apply(this, given); };
  }
})()"""
"""From now on the page counts what it draws."""

FRAME = """new Promise(done => {
  drawn.boxes = drawn.lines = 0;
  ACTION;
  requestAnimationFrame(() => requestAnimationFrame(() => done([drawn.boxes, drawn.lines])));
})"""
"""The boxes and the lines that are drawn for an action."""


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).innerText")


def headings(page):
    return page.run("[...document.querySelectorAll('#panel h3')].map(e => e.textContent)")


@pytest.mark.parametrize("program", [*programs.SEEDS, programs.gpt], ids=lambda program: program.__name__)
def test_a_graph_opens_steps_to_its_end_and_shows_every_node(page, program):
    page = page(program())
    count = page.run("+document.getElementById('seek').max")
    page.press("End")
    assert page.run("explorer.state().at") == count
    for mode in page.run("[...document.getElementById('mode').options].map(o => o.value)"):
        page.run(f"explorer.setMode({mode!r})")
    for number in range(count):
        page.run(f"explorer.visit({number})")
        assert page.run("explorer.state().chosen") == {"node": number}


def test_the_page_says_the_bytes_memory_report_says(page):
    loss = programs.gpt()
    report = torch.memory_report(loss)
    page = page(loss)
    assert f"{size_text(report.kept)} kept for backward" in text(page, "#facts")
    for size in (0, 1023, 1024, 1536, 1024**2 - 1, 1024**2, 5 * 1024**3, 7 * 1024**5):
        assert page.run(f"bytes({size})") == size_text(size)


def test_nothing_is_fetched(page):
    page = page(programs.first_graph())
    assert page.run("performance.getEntriesByType('resource').length") == 0


@pytest.mark.slow
@pytest.mark.parametrize("program", [programs.deep, programs.wide], ids=lambda program: program.__name__)
def test_of_20000_nodes_a_step_draws_those_in_sight_and_the_whole_a_part(page, program):
    """That is what makes it quick; how quick it is, `python -m benchmarks.explorer` measures."""
    step = FRAME.replace("ACTION", "explorer.seek(explorer.state().at + 1)")
    page = page(program())
    page.run(COUNT)
    assert page.run("+document.getElementById('seek').max") >= 20_000
    for mode in (None, "all"):
        if mode:
            page.run(f"explorer.setMode({mode!r})")
            page.wait("explorer.state().still")
            assert page.run("explorer.state().boxes") >= 20_000
        page.run("explorer.seek(9)")  # past the nodes that have thousands of edges, which are all shown
        page.wait("explorer.state().still")
        boxes, lines = page.run(step)
        assert 0 < boxes < 400 and lines < 400
    boxes, lines = page.run(FRAME.replace("ACTION", "document.getElementById('fit').click()"))
    assert page.run("explorer.state().k") < 0.1
    assert 0 < boxes < 5_000 and lines < 5_000
    page.press("End")  # the last leaf got thousands of gradients
    assert 0 < page.run("document.querySelectorAll('#panel tr').length") < 100


def test_a_click_leads_to_the_node_its_saved_tensor_its_gradient_and_the_player(page):
    page = page(programs.two_ways())
    page.run("explorer.visit(1)")  # E = C * D
    page.wait("explorer.state().still")
    x, y = page.run(
        "(() => { const [x, y] = explorer.where(1), r = document.getElementById('graph').getBoundingClientRect();"
        " return [x + r.left, y + r.top]; })()"
    )
    page.run("explorer.choose(null)")
    page.click(x, y)
    assert "MulBackward0" in text(page, "#panel h2")
    assert "grad * conj(other)" in text(page, "#panel pre")
    assert "E = C * D" in text(page, "#panel mark")
    page.click_on("#panel details summary")  # the saved tensor `other`: B ** 2
    page.wait("document.querySelector('#panel details .m')")
    assert text(page, "#panel details .m").split() == ["4"]
    assert headings(page)[0] == "Gradient"
    page.click_on("#first")
    for _ in range(2):
        page.click_on("#next")
    assert page.run("explorer.state().at") == 2
    assert text(page, "#step").startswith("2 of 6: ")


def test_gradients_arrive_one_by_one_and_add_up(page):
    page = page(programs.two_ways())
    shared = next(
        i for i in range(6) if page.run(f"(explorer.visit({i}), document.querySelectorAll('#panel tr').length)") > 2
    )
    rows = "[...document.querySelectorAll('#panel table[aria-label=\"Gradients that arrived\"] tr')]"
    page.press("Home", "ArrowRight")
    page.run(f"explorer.visit({shared})")
    assert page.run(f"{rows}.map(row => row.className)") == ["", "waiting"]
    assert "1 of 2 arrived" in " ".join(headings(page))
    page.press("End")
    page.run(f"explorer.visit({shared})")
    assert page.run(f"{rows}.map(row => row.cells[1].textContent + ', ' + row.cells[2].textContent)") == [
        "‖g‖ 1, sum 1",
        "‖g‖ 9, sum 10",
    ]


def test_the_keyboard_plays_steps_jumps_and_searches(page):
    page = page(programs.first_graph())
    page.press("Space")
    page.wait("explorer.state().at >= 1")
    page.press("Space")
    assert not page.run("explorer.state().playing")
    page.press("End")
    assert page.run("explorer.state().at") == 6
    page.press("ArrowLeft", "ArrowLeft")
    assert page.run("explorer.state().at") == 4
    page.press("Home")
    assert page.run("explorer.state().at") == 0
    page.press("/", "e", "x", "p", "Enter")
    assert text(page, "#panel h2") == "ExpBackward0"
    page.run("document.activeElement.blur()")
    page.press("ArrowDown")
    assert text(page, "#panel h2") == "MulBackward0"
    page.press("ArrowUp", "ArrowUp")
    assert text(page, "#panel h2") == "loss = AddBackward0"
    assert "loss = AddBackward0" in text(page, "#live")


def test_quick_steps_keep_the_node_in_sight(page):
    page = page(programs.gpt())
    page.run("explorer.setMode('all')")
    page.run("(explorer.seek(60), explorer.seek(3))")  # before the picture has moved to the first
    page.wait("explorer.state().still")
    x, y = page.run("explorer.where(2)")
    assert 0 < x < 900 and 0 < y < 700


def test_modules_open_and_close(page):
    page = page(programs.gpt())
    page.run("explorer.setMode('module')")
    before = page.run("explorer.state().boxes")
    page.run("explorer.visit(30)")
    page.press("c")
    inner = page.run("explorer.state().chosen.group")
    assert inner.startswith("model.transformer.h.")
    page.run("document.activeElement.blur()")
    opened = page.run("explorer.state().boxes")
    page.press("Enter")
    assert page.run("explorer.state().boxes") > opened
    page.run("explorer.toggle('model', false)")
    assert page.run("explorer.state().boxes") < before


def test_a_cell_called_in_a_loop_folds_to_one_row_which_opens_into_its_calls(page):
    page = page(programs.reader(200))
    boxes = page.run("explorer.boxes()")
    assert ["net.cell", "LSTMCell · 200 calls · 3,004 nodes"] in boxes and len(boxes) < 10
    page.run("explorer.visitGroup('net.cell#1-200')")
    page.wait("explorer.state().still")
    rows = page.run("[...document.querySelectorAll('#panel table tr')].map(e => e.innerText)")
    assert len(rows) == 200 and "net.cell" in rows[0] and "call 200 of 200" in rows[0]
    page.press("Enter")
    opened = page.run("explorer.boxes()")
    assert [more for title, more in opened if title == "net.cell"] == [
        f"LSTMCell · call {n} of 200 · 15 nodes" for n in range(200, 0, -1)
    ]
    assert sum(title == "net.cell.weight_ih" for title, _ in opened) == 1, "what all calls use stands beside them"


def test_a_module_starts_open_and_those_inside_it_folded_under_their_full_paths(page):
    page = page(programs.gpt())
    titles = [title for title, _ in page.run("explorer.boxes()")]
    for name in ("model.lm_head", "model.transformer.ln_f", "model.transformer.h.1", "model.transformer.h.0"):
        assert titles.count(name) == 1
    assert len(titles) < 16
    page.run("explorer.visitGroup('model.transformer.h.1.attn')")
    page.wait("explorer.state().still")
    assert text(page, "#panel h2") == "model.transformer.h.1.attn"
    assert "model.transformer.h.1.mlp" in [title for title, _ in page.run("explorer.boxes()")]


def test_a_loop_becomes_the_lines_of_the_program(page):
    x = torch.ones(3, requires_grad=True)
    h = x
    for _ in range(40):
        h = h.sin()
        h = h * 2
    page = page(h.sum())
    assert page.run("explorer.state().mode") == "line"
    assert page.run("explorer.state().boxes") == 3  # the sum and two lines, one with x
    assert page.run("explorer.layout().row") == [0, 1, 2]


@pytest.mark.parametrize("program", [programs.gpt, programs.two_ways], ids=lambda program: program.__name__)
def test_the_page_and_the_picture_have_the_same_layout(page, program):
    loss = program()
    page = page(loss)
    page.run("explorer.setMode('all')")
    boxes, edges = boxes_of(torch.explore(loss, path=None).graph, None)
    here = arrange([text_width(box.title, box.more) for box in boxes], edges)
    there = page.run("explorer.layout()")
    assert there["row"] == here.row[: len(boxes)]
    assert there["x"] == pytest.approx(here.x[: len(boxes)], abs=1e-6)


def test_only_loops_lead_back_up(page):
    page = page(programs.reader(80))
    page.run("explorer.toggle('net.cell#1-80', true)")
    here = page.run("explorer.layout()")
    boxes = [title for title, _ in page.run("explorer.boxes()")]
    assert here["row"][boxes.index("net.embed")] > max(r for r, t in zip(here["row"], boxes) if t == "net.cell")
    assert not any(spots[0][1] > spots[-1][1] for spots in page.run("explorer.routes().map(r => r.spots)"))


@pytest.mark.parametrize("mode", ["all", "module", "line"])
def test_no_edge_of_the_page_goes_through_a_box(page, mode):
    page = page(programs.reader(12))
    page.run(f"explorer.setMode({mode!r})")
    for key in ("net.cell#1-12", "net.cell#3"):
        if mode == "module":
            page.run(f"explorer.toggle({key!r}, true)")
    here = page.run("explorer.layout()")
    routes = [(route["spots"], route["around"]) for route in page.run("explorer.routes()")]
    assert len(routes) >= len(here["x"]) - 1
    assert geometry.crossings(routes, here["x"], here["row"], here["widths"]) == []


def test_a_map_shows_where_one_is_and_leads_elsewhere(page):
    page = page(programs.gpt())
    page.run("explorer.setMode('all')")
    page.wait("explorer.state().still")
    before = page.run("explorer.state().y")
    left, right, bottom = page.run(
        "(r => [r.left, r.right, r.bottom])(document.getElementById('map').getBoundingClientRect())"
    )
    page.click((left + right) / 2, bottom - 4)
    page.wait("explorer.state().still")
    assert page.run("explorer.state().y") > before + 1000
    page.press("f")
    page.wait("explorer.state().still")
    assert page.run("document.getElementById('map').hidden"), "with everything in sight there is nothing to find"


def test_from_an_empty_canvas_a_button_leads_back(page):
    page = page(programs.gpt())
    lost = "!document.getElementById('lost').hidden"
    assert not page.run(lost)
    page.run("document.getElementById('graph').dispatchEvent(new WheelEvent('wheel', {deltaX: 90000, deltaY: -50000}))")
    page.wait(lost)
    assert "Nothing of the graph is in sight" in text(page, "#lost")
    page.click_on("#found")
    page.wait(f"!({lost}) && explorer.state().still")
    page.run("document.getElementById('graph').dispatchEvent(new WheelEvent('wheel', {deltaY: 90000}))")
    page.wait(lost)
    page.press("f")
    page.wait(f"!({lost})")


def test_what_is_chosen_stands_in_the_address_so_that_back_works_and_links_can_be_shared(page):
    page = page(programs.gpt())
    assert page.run("location.hash") == ""
    way = []
    for keys in (["ArrowDown"], ["ArrowDown"], ["ArrowDown"] * 3, ["c"]):  # browsers only count what a reader does
        page.press(*keys)
        page.wait("explorer.state().still")
        way.append(page.run("[location.hash, explorer.state().chosen]"))
    assert way[0] == ["#mode=module&node=1", {"node": 0}] and way[1] == ["#mode=module&node=2", {"node": 1}]
    assert way[3] == ["#mode=module&group=model.lm_head", {"group": "model.lm_head"}]
    page.click_on("#mode option[value=line]")
    page.wait("location.hash == '#mode=line'")
    for _ in range(2):
        page.click_on("#next")  # steps of the player are none for Back
    assert page.run("location.hash") == "#mode=line&node=2"
    for place, which in (way[3], way[2]):
        page.run("history.back()")
        page.wait(f"location.hash == {place!r}")
        page.wait("explorer.state().mode == 'module'")
        assert page.run("explorer.state().chosen") == which
    page.run("history.forward()")
    page.wait("explorer.state().chosen.group == 'model.lm_head'")
    page.run("location.reload()")
    page.wait("window.explorer && explorer.perf.firstPaint && explorer.state().chosen")
    assert page.run("explorer.state().chosen") == {"group": "model.lm_head"}
    for odd in ("#mode=none&node=99999", "#node=x", "#group=</script>", "#mode=module%22]"):
        page.run(f"location.hash = {odd!r}")
        page.wait("explorer.state().chosen === null")
        page.run("explorer.visit(3)")


def test_inside_a_notebook_the_page_works_without_an_address(page, tmp_path):
    shown = torch.explore(programs.two_ways(), path=None)._repr_html_()
    page = page(programs.first_graph())
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{shown}", encoding="utf-8")
    page.open(tmp_path / "notebook.html")
    inside = "document.querySelector('iframe').contentWindow.explorer"
    page.wait(f"{inside} && {inside}.perf.firstPaint")
    before = page.run("[location.href, history.length]")
    for node in (1, 2, 3):
        page.run(f"{inside}.visit({node})")
    assert page.run(f"{inside}.state().chosen") == {"node": 3}
    assert page.run("[location.href, history.length]") == before


def test_numbers_in_tables_end_below_each_other(page):
    page = page(programs.gpt())
    last = "[...document.querySelectorAll('#panel td:last-child')]"
    cells = page.run(f"{last}.map(e => [e.textContent, getComputedStyle(e).textAlign])")
    assert len(cells) > 15 and {align for _, align in cells} == {"right"}
    assert {kind.split()[-1] for kind, _ in cells} >= {"KiB", "28"}


def test_most_memory_kept_says_in_which_module_and_at_which_line(page):
    net = torch.nn.Sequential(torch.nn.Linear(4, 500), torch.nn.Tanh(), torch.nn.Linear(500, 2))
    loss = net(torch.ones(8, 4)).sum()
    largest = max((item for item in torch.memory_report(loss).items if not item.leaf), key=lambda item: item.bytes)
    page = page(loss)
    first = page.run("document.querySelector('#panel table tr').innerText").split("\n")
    assert first[0] == largest.node == "TanhBackward0" and first[-1].strip() == size_text(largest.bytes)
    assert f"{largest.place.module} · test_page.py:{largest.place.line}" in first


def test_every_scale_of_colours_says_what_its_ends_mean(page):
    loss = programs.gpt()
    page = page(loss)
    page.run("explorer.setMode('all')")
    choose = "(e => { e.value = TINT; e.onchange(); })(document.getElementById('paint'))"
    page.run(choose.replace("TINT", "'memory'"))
    graph = torch.explore(loss, path=None).graph
    most = max(e.bytes for e in graph.entries)
    assert text(page, "#legend") == f"bytes kept: 0 B{size_text(most)}"
    page.run(choose.replace("TINT", "'gradient'"))
    norms = [e.norm for e in graph.entries if e.norm]
    assert text(page, "#legend") == f"gradient norm (logarithmic): {min(norms):.3g}{max(norms):.3g}"
    page.run("explorer.visit(0)")
    leaf = next(i for i, e in enumerate(graph.entries) if e.kind == "leaf" and e.gradient[0]["shape"] == [128])
    page.run(f"explorer.visit({leaf})")
    low, high, *_ = graph.entries[leaf].gradient[0]["range"]
    top = max(-low, high)
    assert page.run("document.querySelector('#panel .scale').innerText").split() == [f"{-top:g}", "0", f"{top:g}"]
    ticks = page.run("[...document.querySelectorAll('#panel svg text')].map(e => e.textContent)")
    assert ticks[1] == "0" and int(ticks[0]) == max(graph.entries[leaf].gradient[0]["bins"])
    assert [float(tick) for tick in ticks[2:]] == [low, 0, high]


def test_the_heat_map_of_a_vector_is_high_enough_to_be_seen(page):
    x = torch.linspace(-1, 1, 64, requires_grad=True)
    page = page((x * x).sum())
    page.run("explorer.visit(2)")
    page.wait("explorer.state().still")
    wide, high = page.run(
        "(r => [r.width, r.height])(document.querySelector('#panel .pictures canvas').getBoundingClientRect())"
    )
    assert wide >= 100 and high >= 14


def test_the_page_follows_the_readers_taste_and_can_be_switched(page):
    page = page(programs.first_graph(), dark=True)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.run(background)
    page.click_on("#theme")
    assert page.run("document.documentElement.dataset.theme") == "light"
    assert page.run(background) != dark


def test_nothing_sticks_out_on_a_phone(page):
    page = page(programs.gpt(), width=390, height=780)
    page.run("explorer.visit(20)")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.run("document.getElementById('graph').clientHeight") > 150
    page.click_on("#close")
    assert page.run("getComputedStyle(document.getElementById('panel')).display") == "none"


def test_every_control_has_a_name(page):
    page = page(programs.gpt())
    page.run("explorer.visit(5)")
    nameless = (
        "[...document.querySelectorAll('button, input, select, canvas, svg')].filter(e => "
        "!(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length))).length"
    )
    assert page.run(nameless) == 0
    assert page.run("document.getElementById('live').getAttribute('aria-live')") == "polite"


def test_text_of_the_program_stays_text(page):
    names = {"</script><b id=leak>": (x := torch.ones(2, requires_grad=True))}
    page = page((x * 2).sum(), names=names)
    page.run("explorer.visit(2)")
    assert text(page, "#panel h2") == "</script><b id=leak>"
    assert page.run("document.getElementById('leak')") is None


def test_a_failing_step_is_named(page):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()
    y.add_(1)
    page = page(loss)
    assert "modified by an inplace operation" in text(page, "#panel .note")
