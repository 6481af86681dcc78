package live

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFieldsAreOffered: a press or key that opens the list or picker of a field is answered by
// what the viewer needs to show its own; what it then sends becomes the value.
func TestFieldsAreOffered(t *testing.T) {
	ts := newTestServer(t, map[string]string{"/": `<title>Fields</title><style>body { margin: 0 } select, input { position: absolute; left: 0; width: 200px; height: 30px; box-sizing: border-box }
		#list { top: 0 } #day { top: 100px } #colour { top: 200px } #off { top: 300px } #hint { top: 400px } iframe { position: absolute; border: 0; left: 300px; top: 0 }</style>
		<label>Fruit <select id=list><option>apple<optgroup label=Citrus><option value=l>lemon<option disabled>lime</optgroup></select></label>
		<input id=day type=date min=2020-01-01 value=2026-01-02><input id=colour type=color><select id=off disabled><option>x</select>
		<input id=hint list=hints><datalist id=hints><option>one<option>two</datalist><iframe srcdoc="<select style='width:100px;height:30px'><option>in<option>out</select>"></iframe>
		<script>const log = []; for (const t of ["mousedown", "click", "input", "change"]) addEventListener(t, e => log.push(e.target.id + " " + t))</script>`})
	s := ts.openSession(t, "/")
	c := ts.live.Controller(s, "")
	defer c.Close()
	click := func(at string) (offered struct {
		Type  string
		Field struct {
			Kind, Label, Value, Min string
			Rect                    struct{ X, Y, Width, Height float64 }
			Options                 []struct{ Value, Label, Group string }
		}
	}) {
		answer := c.send(t, `{"type":"mouseEvent","event":"mousePressed",`+at+`}`)
		c.send(t, `{"type":"mouseEvent","event":"mouseReleased",`+at+`}`)
		if answer != nil && json.Unmarshal(answer, &offered) != nil {
			t.Fatalf("%s", answer)
		}
		return offered
	}
	read := func(expression string) any {
		answer, err := call(t.Context(), c.cdp, "Runtime.evaluate", map[string]any{
			"expression":    expression,
			"returnByValue": true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return answer["result"].(map[string]any)["value"]
	}
	list := click(`"x":50,"y":15`).Field
	if list.Kind != "select" ||
		!strings.HasPrefix(list.Label, "Fruit") ||
		list.Rect.Width != 200 ||
		len(list.Options) != 3 ||
		list.Options[1].Label != "lemon" ||
		list.Options[1].Group != "Citrus" {
		t.Errorf("a list: %+v", list)
	}
	c.send(t, `{"type":"setField","value":"1"}`)
	if got := read(
		"[list.value, document.activeElement.id, ...log].join()",
	); got != "l,list,list mousedown,list click,list input,list change" {
		t.Errorf("after the choice: %v", got)
	}
	for value, field := range map[string]string{"2": "a disabled option", "9": "no option"} {
		in, _ := ParseInput([]byte(`{"type":"setField","value":"` + value + `"}`))
		if _, err := c.Do(t.Context(), in); err == nil {
			t.Errorf("%s was chosen", field)
		}
	}
	if answer := c.send(
		t,
		`{"type":"keyEvent","event":"keyDown","key":" ","code":"Space"}`,
	); !strings.Contains(string(answer), `"select"`) {
		t.Errorf("the space key: %s", answer)
	}
	if day := click(`"x":190,"y":115`).Field; day.Kind != "date" ||
		day.Value != "2026-01-02" ||
		day.Min != "2020-01-01" {
		t.Errorf("a date: %+v", day)
	}
	c.send(t, `{"type":"setField","value":"2026-05-06"}`)
	if in, _ := ParseInput([]byte(`{"type":"setField","value":"tomorrow"}`)); true {
		if _, err := c.Do(t.Context(), in); err == nil {
			t.Error("a date that is none was set")
		}
	}
	if kind := click(`"x":50,"y":215`).Field.Kind; kind != "color" {
		t.Errorf("a colour: %q", kind)
	}
	c.send(t, `{"type":"setField","value":"#102030"}`)
	if got := click(`"x":50,"y":315`); got.Type != "" {
		t.Errorf("a disabled list: %+v", got)
	}
	if hint := click(`"x":50,"y":415`).Field; hint.Kind != "datalist" ||
		len(hint.Options) != 2 ||
		hint.Options[1].Value != "two" {
		t.Errorf("suggestions: %+v", hint)
	}
	c.send(t, `{"type":"setField","value":"two"}`)
	if framed := click(`"x":350,"y":20`).Field; framed.Kind != "select" || framed.Rect.X < 300 {
		t.Errorf("a list in a frame: %+v", framed)
	}
	c.send(t, `{"type":"setField","value":"1"}`)
	if got := read(
		"[day.value, colour.value, hint.value, frames[0].document.querySelector('select').value].join()",
	); got != "2026-05-06,#102030,two,out" {
		t.Errorf("the fields have %v", got)
	}
}
