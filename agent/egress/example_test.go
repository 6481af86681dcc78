package egress_test

import (
	"errors"
	"fmt"

	"satchel/agent/egress"
)

func ExampleClient_CheckURL() {
	client := egress.New(egress.Policy{})
	for _, raw := range []string{
		"https://example.com/feed",
		"http://127.0.0.1:8080/",
		"http://2130706433/",
		"file:///etc/passwd",
	} {
		_, err := client.CheckURL(raw)
		fmt.Println(raw, errors.Is(err, egress.ErrBlocked), errors.Is(err, egress.ErrScheme))
	}
	// Output:
	// https://example.com/feed false false
	// http://127.0.0.1:8080/ true false
	// http://2130706433/ true false
	// file:///etc/passwd false true
}
