//lint:file-ignore SA1019 A handle stays on the element that was checked; a locator may find another.

package browser

import (
	"fmt"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// FieldScript defines the object field, with the functions by which actions and live views
// enter values:
//
//   - of(e): the field of a label, otherwise the element itself
//   - kind(f): "set" for a field whose value is set as a whole, "keys" for one that is typed
//     into, otherwise the name of what it is
//   - set(f, text): sets the value of a "set" field; it returns why it cannot, or ""
const FieldScript = `const field = (() => {
	const formats = {date: "YYYY-MM-DD", time: "HH:MM or HH:MM:SS", month: "YYYY-MM", week: "YYYY-Www", "datetime-local": "YYYY-MM-DDTHH:MM", color: "#rrggbb"};
	const kind = f => {
		const view = f.ownerDocument.defaultView;
		if (f instanceof view.HTMLSelectElement) return "list, for the action select";
		if (f instanceof view.HTMLButtonElement) return "button, for the action click";
		if (!(f instanceof view.HTMLInputElement)) return "keys";
		switch (f.type) {
		case "checkbox": case "radio": return f.type + ", for the action click";
		case "button": case "submit": case "reset": case "image": return "button, for the action click";
		case "file": return "file field, for the action upload";
		case "hidden": return "hidden field";
		}
		return f.type === "range" || formats[f.type] ? "set" : "keys";
	};
	const format = f => f.type === "range"
		? "a number from " + (f.min || 0) + " to " + (f.max || 100) + (f.step === "any" ? "" : " in steps of " + (f.step || 1))
		: formats[f.type];
	// assign sets the value as a person would, also for frameworks that replace the property.
	const assign = (f, value) => {
		const {set} = Object.getOwnPropertyDescriptor(f.ownerDocument.defaultView.HTMLInputElement.prototype, "value");
		set.call(f, value);
	};
	const fits = (f, text) => {
		if (kind(f) === "keys" || text === "" || f.type === "color" && !/^#[0-9a-f]{6}$/i.test(text)) return f.value === text;
		if (f.type === "range") return Number(text) === Number(f.value);
		return f.type === "color" ? f.value === text.toLowerCase() : f.value !== "";
	};
	const set = (f, text) => {
		const before = f.value;
		assign(f, text);
		if (!fits(f, text)) {
			assign(f, before);
			return "must be " + (format(f) || "a value that fits") + " for the field of type " + f.type;
		}
		const entered = f.value;
		for (const type of ["input", "change"]) f.dispatchEvent(new Event(type, {bubbles: true, composed: type === "input"}));
		return f.isConnected && f.value !== entered ? "was changed by the page: the field of type " + f.type + " now has another value" : "";
	};
	const of = e => e.localName === "label" && e.control || e;
	const isNumber = text => text.trim() === text && text !== "" && isFinite(text) && !/^0[xob]/i.test(text);
	return {of, kind, set, isNumber};
})();`

// prepareField focuses an element for typing, waiting for at most a second until its field
// is enabled. It returns what the field is, and why the text cannot be entered; a "set"
// field has its value afterwards.
const prepareField = `async (e, [text, clear, wait, keys]) => {
	` + FieldScript + `
	const f = field.of(e), kind = field.kind(f), about = {kind, secret: ` + isSecret + `(f), before: ""};
	if (kind !== "set" && kind !== "keys") return {...about, about: "selector", issue: "matches a " + kind};
	const shut = () => f.matches(":disabled") ? "disabled" : f.readOnly === true && f.type !== "range" && f.type !== "color" ? "read-only" : "";
	const until = performance.now() + wait, pause = () => new Promise(done => setTimeout(done, 50));
	while (shut() && performance.now() < until) await pause();
	if (shut()) return {...about, about: "selector", issue: "matches a field that is " + shut()};
	if (kind === "set") {
		f.focus();
		return {...about, about: "text", issue: field.set(f, text)};
	}
	const editable = "value" in f && typeof f.value === "string" && /^(input|textarea)$/.test(f.localName);
	if (clear && !editable && !f.isContentEditable) return {...about, about: "selector", issue: "matches an element that is not a field, whose text cannot be replaced"};
	const before = clear ? "" : editable ? f.value : f.isContentEditable ? f.innerText : "";
	const whole = before + text;
	if (f.type === "number" && whole && !field.isNumber(whole)) return {...about, about: "text", issue: "must make a number, such as -12.5, in the field of type number"};
	if (editable && f.maxLength >= (keys ? 2 : 0) && whole.length > f.maxLength) return {...about, about: "text", issue: "is too long for the field, which takes " + f.maxLength + " characters"};
	const focused = () => {
		const host = f.isContentEditable && f.closest("[contenteditable]") || f;
		host.focus();
		const active = f.getRootNode().activeElement;
		return active === host || f.contains(active) || /^(body|html)$/.test(f.localName);
	};
	while (!focused()) {
		if (performance.now() >= until) return {...about, about: "selector", issue: "matches an element that cannot be typed into"};
		await pause();
	}
	if (f.isContentEditable) {
		f.ownerDocument.getSelection().selectAllChildren(f);
		f.ownerDocument.getSelection().collapseToEnd();
	}
	let end = true; // the caret is at the end
	try { f.setSelectionRange(f.value.length, f.value.length); } catch { end = !before || !editable; }
	return {...about, before, end};
}`

// compareField returns why a field does not have what was typed, or "". Pages may format
// what is typed, complete it, move on to the next field, or take it away at a separator.
const compareField = `(e, [before, text]) => {
	const f = e.localName === "label" && e.control || e;
	if (!f.isConnected || /[\r\n\t]/.test(text) || text === "") return "";
	const typed = /^(input|textarea)$/.test(f.localName);
	if (!typed && !f.isContentEditable || typed && f.getRootNode().activeElement !== f) return "";
	const got = typed ? f.value : f.innerText;
	if (f.type === "number") return Number(got) === Number(before + text) ? "" : "was changed by the page: the field now has another number";
	const plain = t => t.toUpperCase().replace(/[^\p{L}\p{N}]/gu, "");
	if (!plain(text) ? got !== before || got.includes(text) : plain(got).includes(plain(text))) return "";
	return got === "" && /[,; ]$/.test(text) ? "" : "was changed by the page: the field now has another value";
}`

// fieldWait is how long entering a value waits for a field that is disabled or read-only.
const fieldWait = time.Second

// enter enters a text into the field that an element stands for. Where keys would make
// another value of it, it becomes the value; otherwise it is typed with keys after what the
// field has, or replaces that. A field that then has another value is INVALID_ACTION.
func (st *step) enter(handle playwright.ElementHandle, text string, replace, keys bool) error {
	wait := float64(min(fieldWait, time.Until(st.deadline)/2).Milliseconds())
	got, err := handle.Evaluate(prepareField, []any{text, replace, wait, keys})
	if err != nil {
		return err
	}
	about, _ := got.(map[string]any)
	st.showsText.Store(st.showsText.Load() || about["secret"] == false)
	if issue, _ := about["issue"].(string); issue != "" {
		return agent.InvalidAction(
			st.Action.Action,
			fmt.Sprint(about["about"]),
			issue,
		).With("selector", agent.Clip(st.Selector, 200))
	}
	if about["kind"] == "set" {
		return nil
	}
	if replace {
		whole := text
		if keys {
			whole = ""
		}
		if err := handle.Fill(whole, playwright.ElementHandleFillOptions{Timeout: st.milliseconds()}); err != nil {
			return err
		}
	}
	if about["end"] == false {
		if err := handle.Press("End", playwright.ElementHandlePressOptions{Timeout: st.milliseconds()}); err != nil {
			return err
		}
	}
	if keys {
		o := playwright.ElementHandleTypeOptions{Delay: playwright.Float(float64(st.Delay)), Timeout: st.milliseconds()}
		if err := handle.Type(text, o); err != nil {
			return err
		}
	}
	issue, err := handle.Evaluate(compareField, []any{about["before"], text})
	if changed, _ := issue.(string); err == nil && changed != "" {
		return agent.InvalidAction(st.Action.Action, "text", changed).With("selector", agent.Clip(st.Selector, 200))
	}
	return nil // an error means that what was typed led to another page
}

// checkOptions returns an error if a select action wants several options of a list that has
// one choice.
func (st *step) checkOptions(wanted int) error {
	if wanted < 2 {
		return nil
	}
	multiple, err := st.element().Evaluate("e => e.multiple !== false", nil, playwright.LocatorEvaluateOptions{
		Timeout: st.milliseconds(),
	})
	if err == nil && multiple == false {
		err = agent.InvalidAction("select", "values", "must be one value, since the list has one choice")
	}
	return err
}
