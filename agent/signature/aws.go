package signature

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
)

const (
	awsAlgorithm = "AWS4-HMAC-SHA256"
	awsTime      = "20060102T150405Z"
)

// AWSKey is an access key of Amazon Web Services, or of a service that speaks the
// same protocol.
type AWSKey struct{ ID, Secret, Session string } // Session is empty unless the key is temporary

// SignAWS signs a request with AWS Signature Version 4. Region and service come
// from the host where they are not given.
func SignAWS(req *http.Request, key AWSKey, region, service string, now time.Time) error {
	hostService, hostRegion := awsHost(req.URL.Hostname())
	region, service = cmp.Or(region, hostRegion, "us-east-1"), cmp.Or(service, hostService)
	if service == "" {
		return agent.Invalid("config.service", "is required, since the host does not name it")
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if req.Header.Get(name) != "" {
			return agent.Invalid("headers", "must not set "+name+", which the credential sets")
		}
	}
	hash, err := bodyHash(req)
	if err != nil {
		return err
	}
	at := now.UTC().Format(awsTime)
	req.Header.Set("X-Amz-Date", at)
	if service == "s3" {
		req.Header.Set("X-Amz-Content-Sha256", hash)
	}
	if key.Session != "" {
		req.Header.Set("X-Amz-Security-Token", key.Session)
	}
	names, canonical := awsCanonical(req, service, hash)
	scope := strings.Join([]string{at[:8], region, service, "aws4_request"}, "/")
	toSign := strings.Join([]string{awsAlgorithm, at, scope, hexHash([]byte(canonical))}, "\n")
	signer := []byte("AWS4" + key.Secret)
	for _, part := range strings.Split(scope, "/") {
		signer = mac(signer, part)
	}
	req.Header.Set(
		"Authorization",
		awsAlgorithm+" Credential="+key.ID+"/"+scope+", SignedHeaders="+names+", Signature="+
			hex.EncodeToString(mac(signer, toSign)),
	)
	return nil
}

// awsHost returns the service and region named by a host such as
// sqs.eu-central-1.amazonaws.com.
func awsHost(host string) (service, region string) {
	rest, ok := strings.CutSuffix(host, ".amazonaws.com")
	if !ok {
		return "", ""
	}
	labels := strings.Split(rest, ".")
	switch last := labels[len(labels)-1]; {
	case last == "s3" || len(labels) == 1:
		return last, ""
	default:
		return labels[len(labels)-2], last
	}
}

func bodyHash(req *http.Request) (string, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return hexHash(nil), nil
	}
	if req.GetBody == nil {
		return "", agent.Invalid("body", "cannot be signed, since it can be read only once")
	}
	body, err := req.GetBody()
	if err != nil {
		return "", err
	}
	defer body.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, body); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// awsCanonical returns the names of the signed headers and the canonical
// request. Headers that the transport may change are not signed.
func awsCanonical(req *http.Request, service, hash string) (names, canonical string) {
	headers := map[string]string{"host": cmp.Or(req.Host, req.URL.Host)}
	for name, values := range req.Header {
		lower := strings.ToLower(name)
		if lower == "content-type" || strings.HasPrefix(lower, "x-amz-") {
			trimmed := make([]string, len(values))
			for i, v := range values {
				trimmed[i] = strings.Join(strings.Fields(v), " ")
			}
			headers[lower] = strings.Join(trimmed, ",")
		}
	}
	sorted := make([]string, 0, len(headers))
	for name := range headers {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	var lines strings.Builder
	for _, name := range sorted {
		lines.WriteString(name + ":" + headers[name] + "\n")
	}
	names = strings.Join(sorted, ";")
	path := awsEscape(req.URL.Path, true)
	if service != "s3" { // every other service escapes twice
		path = awsEscape(path, true)
	}
	return names, strings.Join(
		[]string{req.Method, cmp.Or(path, "/"), awsQuery(req.URL), lines.String(), names, hash},
		"\n",
	)
}

func awsQuery(u *url.URL) string {
	var pairs [][2]string
	for name, values := range u.Query() {
		for _, v := range values {
			pairs = append(pairs, [2]string{awsEscape(name, false), awsEscape(v, false)})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	var parts []string
	for _, p := range pairs {
		parts = append(parts, p[0]+"="+p[1])
	}
	return strings.Join(parts, "&")
}

// awsEscape escapes all but the unreserved characters of RFC 3986, and slashes
// of a path.
func awsEscape(text string, isPath bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 'a' && c <= 'z' ||
			c >= 'A' && c <= 'Z' ||
			c >= '0' && c <= '9' ||
			strings.IndexByte("-_.~", c) >= 0 ||
			isPath && c == '/' {
			b.WriteByte(c)
		} else {
			b.WriteString(string([]byte{'%', digits[c>>4], digits[c&15]}))
		}
	}
	return b.String()
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
