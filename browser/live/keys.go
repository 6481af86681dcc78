package live

import (
	"strings"
	"unicode/utf8"
)

// virtualIDs maps DOM key names to Windows virtual-key codes, for keys that type
// nothing or something other than their name, see
// https://learn.microsoft.com/windows/win32/inputdev/virtual-key-codes.
var virtualIDs = map[string]int{
	"Backspace": 8, "Tab": 9, "Enter": 13, "Shift": 16, "Control": 17, "Alt": 18, "Pause": 19,
	"CapsLock": 20, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
	"ArrowRight": 39, "ArrowDown": 40, "Insert": 45, "Delete": 46, "Meta": 91, "ContextMenu": 93,
	"F1": 112, "F2": 113, "F3": 114, "F4": 115, "F5": 116, "F6": 117, "F7": 118, "F8": 119, "F9": 120, "F10": 121,
	"F11": 122, "F12": 123,
}

// punctuation maps codes of punctuation keys on a US keyboard to virtual-key codes.
var punctuation = map[string]int{
	"Space": 32, "Semicolon": 186, "Equal": 187, "Comma": 188, "Minus": 189, "Period": 190,
	"Slash": 191, "Backquote": 192, "BracketLeft": 219, "Backslash": 220, "BracketRight": 221, "Quote": 222,
}

// Modifiers that turn a key into a command.
const commandModifiers = 2 | 4 // Control, Meta

// text returns what a key types on keyDown, or "".
func (k Key) text() string {
	switch {
	case k.Modifiers&commandModifiers != 0 && k.Modifiers&1 == 0: // together with Alt it is AltGr
		return ""
	case k.Text == "\n" || k.Key == "Enter":
		return "\r"
	case k.Text != "":
		return k.Text
	case utf8.RuneCountInString(k.Key) == 1:
		return k.Key
	}
	return ""
}

// virtualID returns the Windows virtual-key code of the key, or 0 if it has none.
func (k Key) virtualID() int {
	if k.VirtualID > 0 && k.VirtualID < 256 && utf8.RuneCountInString(k.Key) != 1 {
		return k.VirtualID
	}
	if id := virtualIDs[k.Key]; id > 0 {
		return id
	}
	if id := punctuation[k.Code]; id > 0 {
		return id
	}
	name := k.Code
	if letter, ok := strings.CutPrefix(name, "Key"); ok {
		name = letter
	} else if digit, ok := strings.CutPrefix(name, "Digit"); ok {
		name = digit
	} else {
		name = k.Key
	}
	if name = strings.ToUpper(name); len(name) == 1 &&
		(name[0] >= 'A' && name[0] <= 'Z' || name[0] >= '0' && name[0] <= '9') {
		return int(name[0])
	}
	return 0
}
