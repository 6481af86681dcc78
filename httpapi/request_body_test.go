package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A client that reads the response only once it has sent its whole body gets the
// response, even if the server does not need the body.
func TestLargeBodyIsRefusedWithAResponse(t *testing.T) {
	c := newTestClient(t)
	const size = 32 << 20
	form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.%s\"\r\n\r\n"
	for _, test := range []struct {
		path, media, begin string
		status             int
		code               string
	}{
		{"/api/agents", "application/json", `{"name":"`, 413, "FILE_TOO_LARGE"},
		{"/api/agents", "text/plain", "", 415, "UNSUPPORTED_FORMAT"},
		{
			"/api/agents/default/sources",
			"multipart/form-data; boundary=b",
			fmt.Sprintf(form, "txt"),
			413,
			"FILE_TOO_LARGE",
		},
		{
			"/api/agents/default/sources",
			"multipart/form-data; boundary=b",
			fmt.Sprintf(form, "exe"),
			415,
			"UNSUPPORTED_FORMAT",
		},
		{"/api/agents/none/sources", "multipart/form-data; boundary=b", fmt.Sprintf(form, "txt"), 404, "NOT_FOUND"},
		{"/api/none", "application/json", "", 404, "NOT_FOUND"},
	} {
		t.Run(fmt.Sprint(test.path, " ", test.status), func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = fmt.Fprintf(
				conn,
				"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
				test.path, test.media, size, test.begin,
			)
			if err == nil {
				_, err = io.Copy(conn, strings.NewReader(strings.Repeat("a", size-len(test.begin))))
			}
			if err != nil {
				t.Fatalf("the body was not read: %v", err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil ||
				response.StatusCode != test.status ||
				!response.Close ||
				!strings.Contains(string(body), test.code) {
				t.Errorf("%d %s, closes: %v, %v", response.StatusCode, body, response.Close, err)
			}
		})
	}
}
