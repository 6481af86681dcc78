package signature_test

import (
	"fmt"
	"time"

	"satchel/agent/signature"
)

func ExampleSign() {
	const secret = "whsec_c2F0Y2hlbCBzYXRjaGVsIHNhdGNoZWw="
	body := []byte(`{"type":"contact.created"}`)
	at := time.Unix(1767225600, 0)

	signed := signature.Sign([]string{secret}, "event-1", at, body)
	fmt.Println(signature.Verify(secret, "event-1", "1767225600", signed, body, at))
	fmt.Println(signature.Verify(secret, "event-1", "1767225600", signed, []byte("{}"), at))
	fmt.Println(signature.Verify(secret, "event-1", "1767225600", signed, body, at.Add(time.Hour)))
	// Output:
	// <nil>
	// the signature does not match
	// the signature does not match
}
