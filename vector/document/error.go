package document

import (
	"fmt"

	"satchel/agent"
)

// Codes of a file that was accepted but could not be read. They appear in the
// error of its source; a file that is rejected immediately has
// agent.CodeUnsupportedFormat or agent.CodeValidation.
const (
	CodeBrokenFile agent.Code = "BROKEN_FILE" // truncated or damaged
	CodeTooComplex agent.Code = "TOO_COMPLEX" // over a limit of size, depth or number
	CodeEncrypted  agent.Code = "ENCRYPTED"   // requires a password
	CodeNoText     agent.Code = "NO_TEXT"     // contains only images, or nothing
	CodeTimeout    agent.Code = "TIMEOUT"     // took too long to read
)

// rejected returns the error for a file whose content does not match its name.
func rejected(format string, args ...any) error {
	return agent.Invalid("file", fmt.Sprintf(format, args...))
}

func broken(format string, args ...any) error {
	return agent.Errorf(CodeBrokenFile, format, args...)
}

func tooComplex(format string, args ...any) error {
	return agent.Errorf(CodeTooComplex, format, args...)
}

func noText(format string, args ...any) error {
	return agent.Errorf(CodeNoText, format, args...)
}

// tooMuchText returns the error for extracted text over the limit.
func tooMuchText(limit int) error {
	return tooComplex("the file's text is over the limit of %d MB", max(limit>>20, 1))
}
