package browser

import (
	"encoding/json"
	"errors"
	"net/url"
	"testing"

	"satchel/agent"
)

// fields is a page with every kind of field.
const fields = `<title>Fields</title><form onsubmit="return false">
<input id=date type=date value=2020-01-01> <input id=time type=time> <input id=month type=month> <input id=week type=week>
<input id=local type=datetime-local> <input id=color type=color> <input id=range type=range min=0 max=50 step=5>
<input id=number type=number> <input id=had type=number value=1> <input id=check type=checkbox> <input id=radio type=radio> <input id=file type=file>
<input id=text> <input id=off disabled> <input id=read readonly value=was> <input id=short maxlength=3> <textarea id=area></textarea>
<fieldset disabled><input id=inner type=date></fieldset> <input id=fixed type=date readonly>
<div id=edit contenteditable>a</div> <div id=div>x</div> <div id=box role=textbox tabindex=0></div>
<input id=upper oninput="this.value = this.value.toUpperCase()"> <label id=label>Day <input id=labelled type=date></label>
<input id=phone oninput="const d = this.value.replace(/[^0-9]/g, ''); this.value = d.length > 3 ? '(' + d.slice(0, 3) + ') ' + d.slice(3) : d">
<input id=refuses oninput="this.value = ''"> <input id=one maxlength=1 oninput="two.focus()"><input id=two maxlength=1>
<input id=later disabled> <select id=list><option value=r>red<option value=g>green</select> <button id=button>b</button></form>
<script>const log = []; for (const t of ["input", "change"]) addEventListener(t, e => log.push(e.target.id + " " + t));
setTimeout(() => later.disabled = false, 200)</script>`

// TestTypeEntersTheValue: a type action, and a fill of the model, either sets a field to what
// was given or fails and names the field.
func TestTypeEntersTheValue(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	site := serveSite(t, map[string]string{"/": fields})
	for _, c := range []struct{ id, text, want, field string }{
		{"date", "2026-02-28", "2026-02-28", ""},
		{"date", "28.02.2026", "", "text"},
		{"date", "2026-02-30", "", "text"},
		{"date", "", "", ""},
		{"time", "09:30", "09:30", ""},
		{"time", "9:30 PM", "", "text"},
		{"month", "2026-12", "2026-12", ""},
		{"month", "12/2026", "", "text"},
		{"week", "2026-W07", "2026-W07", ""},
		{"week", "2026-W60", "", "text"},
		{"local", "2026-02-28T10:15", "2026-02-28T10:15", ""},
		{"local", "tomorrow", "", "text"},
		{"color", "#FF8800", "#ff8800", ""},
		{"color", "orange", "", "text"},
		{"range", "35", "35", ""},
		{"range", "33", "", "text"},
		{"range", "400", "", "text"},
		{"range", "x", "", "text"},
		{"number", "-12.5", "-12.5", ""},
		{"number", "12 pieces", "", "text"},
		{"number", "1e5", "1e5", ""},
		{"check", "true", "", "selector"},
		{"radio", "x", "", "selector"},
		{"file", "a.txt", "", "selector"},
		{"list", "g", "", "selector"},
		{"button", "x", "", "selector"},
		{"div", "x", "", "selector"},
		{"text", "Ada", "Ada", ""},
		{"area", "a\nb", "a\nb", ""},
		{"off", "x", "", "selector"},
		{"read", "x", "", "selector"},
		{"inner", "2026-01-01", "", "selector"},
		{"fixed", "2026-01-01", "", "selector"},
		{"short", "abc", "abc", ""},
		{"short", "abcd", "", "text"},
		{"label", "2026-02-28", "labelled:2026-02-28", ""},
		{"later", "x", "x", ""},
		{"phone", "5551234", "(555) 1234", ""},
		{"refuses", "x", "", "text"},
		{"box", "x", "", "selector"},
		{"upper", "größe", "GRÖSSE", ""},
	} {
		for name, enter := range map[string]func(agent.Action) error{
			"type": func(a agent.Action) error {
				_, err := s.Do(t.Context(), a)
				return err
			},
			"fill": func(a agent.Action) error {
				_, err := s.Fill(t.Context(), a, c.text, func(*url.URL) error { return nil })
				return err
			},
		} {
			must(t, s, `{"action":"navigate","url":"`+site+`/"}`)
			if name == "fill" && c.id == "phone" {
				continue // a page may rely on keys
			}
			limit := 5000
			err := enter(agent.Action{
				Action:   "type",
				Selector: "#" + c.id,
				Text:     &c.text,
				Clear:    true,
				Timeout:  &limit,
			})
			var e *agent.Error
			if c.field != "" {
				if !errors.As(err, &e) || e.Code != agent.CodeInvalidAction || e.Details["field"] != c.field {
					t.Errorf("%s %q into %s: %v, want an error about %s", name, c.text, c.id, err, c.field)
				}
				continue
			}
			want, _ := json.Marshal(c.want)
			script, _ := json.Marshal("[...document.querySelectorAll('input,textarea')].some(f => [f.value, " +
				"f.id + ':' + f.value].includes(" +
				string(want) + "))")
			if err != nil || must(t, s, `{"action":"evaluate","script":`+string(script)+`}`)["value"] != true {
				t.Errorf("%s %q into %s: %v, or another value", name, c.text, c.id, err)
			}
		}
	}
	must(t, s, `{"action":"navigate","url":"`+site+`/"}`)
	must(t, s, `{"action":"type","selector":"#date","text":"2026-01-02"}`)
	must(t, s, `{"action":"type","selector":"#edit","text":"bc"}`)
	must(t, s, `{"action":"type","selector":"#had","text":"5"}`)
	must(t, s, `{"action":"type","selector":"#one","text":"12"}`) // the page moves on after each digit
	read := `{"action":"evaluate","script":"[log.slice(0, 2), edit.textContent, had.value, ` +
		`one.value + two.value].join()"}`
	if got := must(t, s, read)["value"]; got != "date input,date change,abc,15,12" {
		t.Errorf("got %v", got)
	}
	if _, err := do(
		t,
		s,
		`{"action":"select","selector":"#list","values":["r","g"]}`,
	); agent.ErrorCode(err) != agent.CodeInvalidAction {
		t.Errorf("two options of a list with one choice: %v", err)
	}
	if got := must(t, s, `{"action":"evaluate","script":"list.value"}`)["value"]; got != "r" {
		t.Errorf("the list has %v", got)
	}
}
