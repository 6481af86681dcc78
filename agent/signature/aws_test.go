package signature

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSignAWS signs requests of the test suite of Signature Version 4 and of
// the documentation of S3:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func TestSignAWS(t *testing.T) {
	suite := AWSKey{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	day := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for name, tc := range map[string]struct{ method, url, body, media, signature string }{
		"get-vanilla": {
			"GET",
			"https://example.amazonaws.com/",
			"",
			"",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		"get-vanilla-query-order-key": {
			"GET",
			"https://example.amazonaws.com/?Param2=value2&Param1=value1",
			"",
			"",
			"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		},
		"post-vanilla": {
			"POST",
			"https://example.amazonaws.com/",
			"",
			"",
			"5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		},
		"post-x-www-form-urlencoded": {
			"POST",
			"https://example.amazonaws.com/",
			"Param1=value1",
			"application/x-www-form-urlencoded",
			"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
		},
		"get-vanilla-query-unreserved": {
			"GET",
			"https://example.amazonaws.com/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0" +
				"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			"",
			"",
			"9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
		},
	} {
		req, err := http.NewRequest(tc.method, tc.url, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if tc.media != "" {
			req.Header.Set("Content-Type", tc.media)
		}
		if err := SignAWS(req, suite, "us-east-1", "service", day); err != nil {
			t.Fatal(err)
		}
		if got := req.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+tc.signature) {
			t.Errorf("%s: %s", name, got)
		}
	}
	req, _ := http.NewRequest("GET", "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", nil)
	keys := AWSKey{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	if err := SignAWS(req, keys, "", "", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if got := req.Header.Get("Authorization"); !strings.HasSuffix(
		got,
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
	) ||
		!strings.Contains(got, "/20130524/us-east-1/s3/") {
		t.Errorf("S3: %s", got)
	}
}
