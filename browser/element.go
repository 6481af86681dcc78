//lint:file-ignore SA1019 A handle stays on the element that was checked; a locator may find another.

package browser

import (
	"context"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

func click(_ context.Context, st *step) (map[string]any, error) {
	o := playwright.LocatorClickOptions{Timeout: st.milliseconds()}
	if st.Button != "" {
		button := playwright.MouseButton(st.Button)
		o.Button = &button
	}
	if st.Clicks > 1 {
		o.ClickCount = &st.Clicks
	}
	return nil, st.element().Click(o)
}

func hover(_ context.Context, st *step) (map[string]any, error) {
	return nil, st.element().Hover(playwright.LocatorHoverOptions{Timeout: st.milliseconds()})
}

func typeText(_ context.Context, st *step) (map[string]any, error) {
	e, err := st.element().ElementHandle(playwright.LocatorElementHandleOptions{Timeout: st.milliseconds()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Dispose() }() // otherwise it is released with its document
	return nil, st.enter(e, *st.Text, st.Clear, true)
}

func press(_ context.Context, st *step) (map[string]any, error) {
	if st.Selector != "" {
		return nil, st.element().Press(st.Key, playwright.LocatorPressOptions{Timeout: st.milliseconds()})
	}
	return nil, st.page.page.Keyboard().Press(st.Key)
}

func selectOption(_ context.Context, st *step) (map[string]any, error) {
	var wanted playwright.SelectOptionValues
	switch {
	case st.Label != nil:
		wanted.Labels = &[]string{*st.Label}
	case st.Value != nil:
		wanted.Values = &[]string{*st.Value}
	default:
		wanted.Values = &st.Values
	}
	if err := st.checkOptions(len(st.Values)); err != nil {
		return nil, err
	}
	chosen, err := st.element().SelectOption(wanted, playwright.LocatorSelectOptionOptions{Timeout: st.milliseconds()})
	if err != nil {
		return nil, err
	}
	return map[string]any{"values": append([]string{}, chosen...)}, nil // never null
}

func upload(_ context.Context, st *step) (map[string]any, error) {
	files := make([]playwright.InputFile, len(st.Files))
	for i, f := range st.Files {
		files[i] = playwright.InputFile{
			Name:     f.Name,
			MimeType: f.MIMEType,
			Buffer:   f.Data,
		}
		if f.MIMEType == "" {
			files[i].MimeType = "application/octet-stream"
		}
	}
	err := st.element().SetInputFiles(files, playwright.LocatorSetInputFilesOptions{Timeout: st.milliseconds()})
	return map[string]any{"files": len(files)}, err
}

// scrollBy scrolls an element, or the page if there is none, and returns the
// resulting position. Smooth scrolling would not have finished.
const scrollBy = `(e, [direction, amount]) => {
	const at = e === document.body || e === document.documentElement || !e ? document.scrollingElement || document.documentElement : e;
	const [x, y] = {up: [0, -amount], down: [0, amount], left: [-amount, 0], right: [amount, 0], top: [0, -at.scrollHeight], bottom: [0, at.scrollHeight]}[direction];
	at.scrollBy({left: x, top: y, behavior: "instant"});
	return [at.scrollLeft, at.scrollTop];
}`

const defaultScroll = 500 // pixels

func scroll(_ context.Context, st *step) (map[string]any, error) {
	if st.Selector != "" && st.Direction == "" && st.Amount == nil {
		return nil, st.element().ScrollIntoViewIfNeeded(playwright.LocatorScrollIntoViewIfNeededOptions{
			Timeout: st.milliseconds(),
		})
	}
	direction, amount := st.Direction, float64(defaultScroll)
	if direction == "" {
		direction = "down"
	}
	if st.Amount != nil {
		amount = *st.Amount
	}
	e := st.page.page.Locator(":root")
	if st.Selector != "" {
		e = st.element()
	}
	at, err := e.Evaluate(scrollBy, []any{direction, amount}, playwright.LocatorEvaluateOptions{
		Timeout: st.milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	if xy, ok := at.([]any); ok && len(xy) == 2 {
		return map[string]any{"x": xy[0], "y": xy[1]}, nil
	}
	return nil, nil
}

func wait(ctx context.Context, st *step) (map[string]any, error) {
	switch {
	case st.Selector != "":
		state := playwright.WaitForSelectorStateVisible
		if st.State != "" {
			wanted := playwright.WaitForSelectorState(st.State)
			state = &wanted
		}
		return nil, st.element().WaitFor(playwright.LocatorWaitForOptions{State: state, Timeout: st.milliseconds()})
	case st.URL != "":
		return nil, waitForURL(ctx, st)
	case st.Download:
		return waitForDownload(ctx, st)
	}
	pause := time.NewTimer(time.Duration(st.Milliseconds()) * time.Millisecond)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func waitForURL(ctx context.Context, st *step) error {
	changed, end := st.session.Changes()
	defer end()
	glob := urlGlob(st.URL)
	for {
		p := st.page
		if active := st.session.ActivePage(); st.PageID == "" && active != nil {
			p = active // an earlier click may have opened it
		}
		if url := p.Address(); url == st.URL || glob.MatchString(url) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// maxValue limits all values of extract together, in bytes.
const maxValue = 1 << 20

// readElements returns the requested value of each of the first 1,000 elements,
// or null. Values of secret fields are masked.
const readElements = `(list, name) => {
	const isSecret = ` + isSecret + `, masked = v => v ? "` + masked + `" : v;
	const html = e => {
		const has = f => f.hasAttribute("value") && isSecret(f);
		if (![...e.querySelectorAll("input")].some(has)) return e.innerHTML;
		const copy = e.cloneNode(true);
		for (const f of copy.querySelectorAll("input")) if (has(f)) f.setAttribute("value", masked(f.getAttribute("value")));
		return copy.innerHTML;
	};
	return list.slice(0, 1000).map(e => {
		switch (/^value$/i.test(name) ? "value" : name) {
		case "text": return e.innerText ?? e.textContent;
		case "html": return html(e);
		case "value": return isSecret(e) ? masked(e.value) : e.value ?? null;
		}
		return e.getAttribute(name);
	});
}`

func extract(_ context.Context, st *step) (map[string]any, error) {
	name := st.Attribute
	if name == "" {
		name = "text"
	}
	found := st.page.page.Locator(st.Selector)
	if !st.All {
		found = found.First()
	}
	read, err := found.EvaluateAll(readElements, name)
	values, _ := read.([]any)
	// the element may be loading; checking first is ten times as fast as waiting
	if err == nil && len(values) == 0 && !st.All {
		if err := found.WaitFor(playwright.LocatorWaitForOptions{
			State:   playwright.WaitForSelectorStateAttached,
			Timeout: st.milliseconds(),
		}); err != nil {
			return nil, err
		}
		read, err = found.EvaluateAll(readElements, name)
		values, _ = read.([]any)
	}
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	room := maxValue
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if len(text) > room {
			text = agent.Clip(text, room)
			result["truncated"] = true
		}
		room -= len(text)
		values[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	switch {
	case st.All && values == nil:
		result["value"] = []any{}
	case st.All:
		result["value"] = values
	case len(values) > 0:
		result["value"] = values[0]
	default:
		return nil, agent.Errorf(agent.CodeBrowser, "the element disappeared").With("action", "extract")
	}
	return result, nil
}
