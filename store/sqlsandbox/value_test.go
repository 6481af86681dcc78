package sqlsandbox

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAnswerSize checks that the size that is counted is the size as JSON.
func TestAnswerSize(t *testing.T) {
	for _, v := range []any{
		nil, int64(-1 << 60), int64(7), 1.5, 1e300, "", "plain", "\"\\\n\r\t\b\f\x00\x1f<>&é\u2028", []byte("abc"),
		"bad\xffutf8", strings.Repeat("<", 100),
	} {
		shown, n := jsonValue(v)
		b, err := json.Marshal(shown)
		if err != nil || len(b)+1 > n || n > len(b)+30 {
			t.Errorf("%q: counted %d bytes, JSON has %d, %v", v, n, len(b)+1, err)
		}
	}
}
