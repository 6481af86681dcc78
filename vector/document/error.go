package document

import (
	"fmt"

	"satchel/agent"
)

// Codes of a file that was accepted and then could not be read. They stand in
// the error of its source; a file that is refused at once has
// agent.CodeUnsupportedFormat or agent.CodeValidation.
const (
	CodeBrokenFile agent.Code = "BROKEN_FILE" // cut off or damaged
	CodeTooComplex agent.Code = "TOO_COMPLEX" // over a limit of size, depth or number
	CodeEncrypted  agent.Code = "ENCRYPTED"   // needs a password
	CodeNoText     agent.Code = "NO_TEXT"     // holds pictures only, or nothing
	CodeTimeout    agent.Code = "TIMEOUT"     // took too long to read
)

// refused is for a file that is not what its name says.
func refused(format string, args ...any) error {
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

// tooMuchText says that the extracted text passes the limit.
func tooMuchText(limit int) error {
	return tooComplex("the file's text is over the limit of %d MB", max(limit>>20, 1))
}
