package live

import (
	"context"
	"encoding/json"

	"satchel/browser"
)

// Chromium shows lists and pickers of fields in windows of their own, which pictures lack. A
// viewer is therefore sent a description of the field, shows a control of its own, and sends
// the chosen value.

// findField returns the field with a list or a picker at a point of the page, or, without
// coordinates, that with the focus; otherwise null.
const findField = `((x, y) => {
	let e = document, at;
	for (;;) {
		at = x === undefined ? e.activeElement : e.elementFromPoint(x, y);
		if (!at) return null;
		let inner = at.shadowRoot;
		if (/^i?frame$/.test(at.localName)) {
			try { inner = at.contentDocument; } catch {}
			const box = at.getBoundingClientRect();
			if (inner && x !== undefined) [x, y] = [x - box.x - at.clientLeft, y - box.y - at.clientTop];
		}
		if (!inner || inner === e) break;
		e = inner;
	}
	if (at.localName === "option" || at.localName === "optgroup") at = at.closest("select");
	const picks = at && (at.localName === "select" ? !at.multiple && at.size < 2 : at.localName === "input" &&
		(/^(date|time|month|week|datetime-local|color)$/.test(at.type) || at.list));
	return picks && !at.matches(":disabled") && !at.readOnly ? at : null;
})`

// describeField describes a field and keeps the next press from opening Chromium's window.
const describeField = `function (limit) {
	const select = this.localName === "select", view = this.ownerDocument.defaultView;
	const box = this.getBoundingClientRect(), rect = {x: box.x, y: box.y, width: box.width, height: box.height};
	try {
		for (let w = view; w.frameElement; w = w.parent) {
			const outer = w.frameElement.getBoundingClientRect();
			rect.x += outer.x + w.frameElement.clientLeft; rect.y += outer.y + w.frameElement.clientTop;
		}
	} catch {}
	const kept = e => e.preventDefault();
	if (select || !this.list) {
		const event = select ? "mousedown" : "click";
		view.addEventListener(event, kept, {capture: true, once: true});
		view.setTimeout(() => view.removeEventListener(event, kept, {capture: true}), 2000);
	}
	if (select) this.focus();
	const clip = text => String(text).trim().slice(0, 300);
	const options = [...(select ? this.options : this.list ? this.list.options : [])].slice(0, limit).map((o, i) => ({
		value: select ? String(i) : o.value, label: clip(o.label || o.value), selected: select && o.selected,
		disabled: o.matches(":disabled"), group: o.parentElement.localName === "optgroup" ? clip(o.parentElement.label) : ""}));
	return {kind: select ? "select" : this.list ? "datalist" : this.type, label: clip(this.labels?.[0]?.innerText || this.getAttribute("aria-label") || ""),
		value: select ? "" : this.value, min: this.min || "", max: this.max || "", step: this.step || "", rect, options};
}`

// setField sets the value of a field as a person does.
const setField = `function (text) {
	` + browser.FieldScript + `
	if (this.localName === "select") {
		const option = this.options[Number(text)];
		if (!option || option.matches(":disabled")) return "has no such option";
		this.selectedIndex = option.index;
		for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, {bubbles: true, composed: type === "input"}));
		return "";
	}
	this.focus();
	return field.set(this, text);
}`

// maxOptions limits the options of a field that a viewer is sent.
const maxOptions = 2_000

// offeredField is what a viewer is sent about a field.
type offeredField struct {
	Type   string `json:"type"`
	PageID string `json:"pageId"`
	Field  any    `json:"field"`
}

// offer returns the message about the field with a list or a picker that an expression
// evaluates to, or nil if there is none. The next setField is for it.
func (c *Controller) offer(ctx context.Context, expression string) []byte {
	found, err := call(ctx, c.cdp, "Runtime.evaluate", map[string]any{"expression": expression, "timeout": 500})
	result, _ := found["result"].(map[string]any)
	id, _ := result["objectId"].(string)
	if err != nil || id == "" {
		return nil
	}
	answer, err := c.inField(ctx, id, describeField, maxOptions)
	if err != nil || answer == nil {
		return nil
	}
	c.field = id
	raw, _ := json.Marshal(offeredField{"field", c.page.ID(), answer}) // it came as JSON
	return raw
}

// inField calls a function of a field's element and returns its result.
func (c *Controller) inField(ctx context.Context, id, function string, argument any) (any, error) {
	answer, err := call(ctx, c.cdp, "Runtime.callFunctionOn", map[string]any{
		"objectId":            id,
		"functionDeclaration": function,
		"arguments":           []any{map[string]any{"value": argument}},
		"returnByValue":       true,
	})
	result, _ := answer["result"].(map[string]any)
	return result["value"], err
}

// setField sets the field that was offered last.
func (c *Controller) setField(ctx context.Context, page *browser.Page, value string) error {
	if c.page != page || c.field == "" {
		return invalid("type", "needs a field that was offered before")
	}
	issue, err := c.inField(ctx, c.field, setField, value)
	if text, _ := issue.(string); err == nil && text != "" {
		return invalid("value", text)
	}
	return err
}

// opensField reports whether a key opens the list or picker of a field that has the focus.
func (k Key) opensField() bool {
	if k.Type != "keyDown" || k.Modifiers&commandModifiers != 0 {
		return false
	}
	return k.Key == " " ||
		k.Key == "Enter" ||
		k.Key == "F4" ||
		k.Modifiers&1 != 0 && (k.Key == "ArrowDown" || k.Key == "ArrowUp")
}
