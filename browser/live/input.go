package live

import (
	"encoding/json"
	"math"
	"strings"

	"satchel/agent"
)

// Input is one input message of a viewer.
type Input struct {
	// mouseEvent, keyEvent, insertText, setField, navigation, closeTab, newTab, selectTab or getSelectedText
	Kind   string
	PageID string // tab to act in; "" means the one shown
	Mouse  Mouse
	Key    Key
	Action string // of a navigation: goto, back, forward or refresh
	URL    string // to go to
	Text   string // to insert where the cursor is, or the value of a setField
}

// Mouse is a mouse event, with its position in viewport pixels.
type Mouse struct {
	Type           string // mousePressed, mouseReleased, mouseMoved or mouseWheel
	X, Y           float64
	Button         string // none, left, middle, right, back or forward
	DeltaX, DeltaY float64
	Modifiers      int // 1 Alt, 2 Control, 4 Meta, 8 Shift
	Clicks         int // 0: they are counted here
}

// Key is a keyboard event.
type Key struct {
	Type      string // keyDown, keyUp or char
	Key, Code string // as in DOM events
	Text      string // text that it types; "" to derive it from Key
	VirtualID int    // Windows virtual-key code; 0 to derive it from Code and Key
	Modifiers int
}

// message is a viewer's message as it arrives: in the specification the fields
// are next to each other and "event" is the event's name; Steel's viewer puts
// them into an object "event" whose "type" is the name.
type message struct {
	Type   string          `json:"type"`
	PageID string          `json:"pageId"`
	Event  json.RawMessage `json:"event"`
	fields
}

type fields struct {
	X          *float64 `json:"x"`
	Y          *float64 `json:"y"`
	Button     string   `json:"button"`
	DeltaX     float64  `json:"deltaX"`
	DeltaY     float64  `json:"deltaY"`
	ClickCount int      `json:"clickCount"`
	Modifiers  int      `json:"modifiers"`
	Key        string   `json:"key"`
	Code       string   `json:"code"`
	Text       string   `json:"text"`
	KeyCode    int      `json:"keyCode"`
	Action     string   `json:"action"`
	URL        string   `json:"url"`
	Value      *string  `json:"value"`
}

// Limits of a message's values.
const (
	maxCoordinate = 100_000
	maxKeyText    = 64
	maxURL        = 32 << 10
	maxInsert     = 32 << 10
)

// ParseInput parses a viewer's message. An invalid one is INVALID_ACTION, and the error
// names the field.
func ParseInput(raw []byte) (Input, error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return Input{}, invalid("type", "the message is no JSON object of the right shape")
	}
	what := ""
	if len(m.Event) > 0 && m.Event[0] == '{' {
		nested := struct {
			Type string `json:"type"`
			*fields
		}{fields: &m.fields}
		if err := json.Unmarshal(m.Event, &nested); err != nil {
			return Input{}, invalid("event", "holds a value of the wrong type")
		}
		what = nested.Type
	} else if len(m.Event) > 0 && json.Unmarshal(m.Event, &what) != nil {
		return Input{}, invalid("event", "must be text or an object")
	}
	in := Input{Kind: m.Type, PageID: m.PageID}
	if len(m.PageID) > 100 {
		return Input{}, invalid("pageId", "is too long")
	}
	switch m.Type {
	case "mouseEvent":
		err := in.Mouse.parse(what, m.fields)
		return in, err
	case "keyEvent":
		err := in.Key.parse(what, m.fields)
		return in, err
	case "navigation":
		err := in.navigation(m.fields)
		return in, err
	case "insertText":
		if m.Text == "" || len(m.Text) > maxInsert {
			return Input{}, invalid("text", "is required, and at most 32 KB long")
		}
		in.Text = m.Text
		return in, nil
	case "setField":
		if m.Value == nil || len(*m.Value) > maxInsert {
			return Input{}, invalid("value", "is required, and at most 32 KB long")
		}
		in.Text = *m.Value
		return in, nil
	case "closeTab", "newTab", "selectTab", "getSelectedText":
		return in, nil
	}
	return Input{}, invalid(
		"type",
		"must be mouseEvent, keyEvent, insertText, setField, navigation, closeTab, newTab, "+
			"selectTab or getSelectedText",
	)
}

func invalid(field, issue string) error {
	return agent.Errorf(agent.CodeInvalidAction, "%s %s", field, issue).With("field", field).With("issue", issue)
}

var mouseTypes = map[string]bool{
	"mousePressed":  true,
	"mouseReleased": true,
	"mouseMoved":    true,
	"mouseWheel":    true,
}

// buttonBits maps the buttons to their bits in DOM's MouseEvent.buttons.
var buttonBits = map[string]int{
	"none":    0,
	"left":    1,
	"right":   2,
	"middle":  4,
	"back":    8,
	"forward": 16,
}

func (m *Mouse) parse(what string, fields fields) error {
	if !mouseTypes[what] {
		return invalid("event", "must be mousePressed, mouseReleased, mouseMoved or mouseWheel")
	}
	if fields.X == nil || fields.Y == nil {
		return invalid("x", "and y are required")
	}
	for _, n := range []float64{*fields.X, *fields.Y, fields.DeltaX, fields.DeltaY} {
		if math.Abs(n) > maxCoordinate {
			return invalid("x", "is far outside of any page")
		}
	}
	if fields.Button == "" {
		fields.Button = "none"
		if what == "mousePressed" || what == "mouseReleased" {
			fields.Button = "left"
		}
	}
	if _, ok := buttonBits[fields.Button]; !ok {
		return invalid("button", "must be none, left, middle, right, back or forward")
	}
	if fields.ClickCount < 0 ||
		fields.ClickCount > 3 ||
		fields.Modifiers < 0 ||
		fields.Modifiers > 15 {
		return invalid("modifiers", "must be 0 to 15, and clickCount 0 to 3")
	}
	*m = Mouse{
		Type:      what,
		X:         *fields.X,
		Y:         *fields.Y,
		Button:    fields.Button,
		DeltaX:    fields.DeltaX,
		DeltaY:    fields.DeltaY,
		Modifiers: fields.Modifiers,
		Clicks:    fields.ClickCount,
	}
	return nil
}

func (k *Key) parse(what string, fields fields) error {
	switch {
	case what != "keyDown" && what != "keyUp" && what != "char":
		return invalid("event", "must be keyDown, keyUp or char")
	case len(fields.Key) > maxKeyText || len(fields.Code) > maxKeyText || len(fields.Text) > maxKeyText:
		return invalid("key", "is too long")
	case fields.Key == "" && fields.Text == "":
		return invalid("key", "is required")
	case fields.Modifiers < 0 || fields.Modifiers > 15:
		return invalid("modifiers", "must be 0 to 15")
	case fields.KeyCode < 0 || fields.KeyCode > 0xffff:
		return invalid("keyCode", "must be 0 to 65535")
	}
	*k = Key{
		Type:      what,
		Key:       fields.Key,
		Code:      fields.Code,
		Text:      fields.Text,
		VirtualID: fields.KeyCode,
		Modifiers: fields.Modifiers,
	}
	return nil
}

func (in *Input) navigation(fields fields) error {
	in.Action, in.URL = fields.Action, strings.TrimSpace(fields.URL)
	if in.Action == "" && in.URL != "" {
		in.Action = "goto"
	}
	switch in.Action {
	case "back", "forward", "refresh":
		return nil
	case "goto":
		if in.URL == "" || len(in.URL) > maxURL {
			return invalid("url", "is required, and at most 32 KB long")
		}
		in.URL = completeAddress(in.URL)
		return nil
	}
	return invalid("action", "must be goto, back, forward or refresh")
}
