package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/signature"
)

// storage stores objects under keys of lower-case letters, digits, and -._/ . An object
// is stored completely or not at all.
type storage interface {
	// prepare is called before the first put, until it succeeds. used reports whether
	// this data folder had replicas there before.
	prepare(used bool) error
	put(ctx context.Context, key string, body io.ReaderAt, size int64) error
	get(ctx context.Context, key string) (io.ReadCloser, error)
	// list returns the keys under a prefix, which ends with a slash, in no particular
	// order.
	list(ctx context.Context, prefix string) ([]string, error)
	// folders returns the first parts of all keys.
	folders(ctx context.Context) ([]string, error)
	remove(ctx context.Context, key string) error
}

// errNoObject reports that no object has the key.
var errNoObject = errors.New("there is no such object")

// Target is where replicas are kept.
type Target struct {
	name    string // without secrets
	storage storage
}

// String returns the target without secrets.
func (t Target) String() string { return t.name }

// bucketName and prefixName match names that never need escaping.
var (
	bucketName = agent.Pattern(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixName = agent.Pattern(`^[A-Za-z0-9_-][A-Za-z0-9._/-]*$`)
)

// Open returns the target named by a URL, without connecting to it: a folder, as a path
// or a file:// URL, or a bucket:
//
//	s3://BUCKET/PREFIX?region=REGION&endpoint=https://HOST
//
// Without an endpoint the bucket is on Amazon S3. getenv returns the credentials:
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION.
func Open(target string, getenv func(string) string) (Target, error) {
	u, err := url.Parse(target)
	if err != nil {
		return Target{}, errors.New("is neither a folder nor a URL")
	}
	switch u.Scheme {
	case "s3":
		return openBucket(u, getenv)
	case "", "file":
		return openFolder(cmp.Or(u.Path, u.Opaque), u)
	}
	if len(u.Scheme) == 1 { // a Windows drive
		return openFolder(target, &url.URL{})
	}
	return Target{}, fmt.Errorf("has the scheme %q; folders and s3:// are possible", u.Scheme)
}

func openFolder(path string, u *url.URL) (Target, error) {
	if u.Host != "" ||
		u.RawQuery != "" ||
		u.User != nil ||
		path == "" {
		return Target{}, errors.New("is not a folder like /srv/replicas or file:///srv/replicas")
	}
	path, err := filepath.Abs(filepath.FromSlash(path))
	return Target{path, &folder{root: path}}, err
}

func openBucket(address *url.URL, getenv func(string) string) (Target, error) {
	prefix := strings.Trim(address.Path, "/")
	query := address.Query()
	region := cmp.Or(query.Get("region"), getenv("AWS_REGION"), "us-east-1")
	b := &bucket{
		prefix: prefix,
		region: region,
		key: signature.AWSKey{
			ID:      getenv("AWS_ACCESS_KEY_ID"),
			Secret:  getenv("AWS_SECRET_ACCESS_KEY"),
			Session: getenv("AWS_SESSION_TOKEN"),
		},
		client: egress.New(egress.Policy{AllowPrivate: true, MaxResponse: -1}),
	}
	endpoint := query.Get("endpoint")
	query.Del("region")
	query.Del("endpoint")
	switch {
	case address.User != nil:
		return Target{}, errors.New("must not contain credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case !bucketName().MatchString(address.Host):
		return Target{}, errors.New("does not name a bucket: s3://BUCKET/PREFIX")
	case prefix != "" && !prefixName().MatchString(prefix) || strings.Contains(prefix, ".."):
		return Target{}, errors.New("has a prefix of other characters than letters, digits, and -._/")
	case len(query) > 0:
		return Target{}, errors.New("has parameters other than region and endpoint")
	case b.key.ID == "" || b.key.Secret == "":
		return Target{}, errors.New("needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
	}
	b.base = "https://" + address.Host + ".s3." + region + ".amazonaws.com/"
	if endpoint != "" {
		e, err := url.Parse(endpoint)
		if err != nil ||
			e.Scheme != "https" && e.Scheme != "http" ||
			e.Host == "" ||
			e.User != nil ||
			strings.Trim(e.Path, "/") != "" ||
			e.RawQuery != "" {
			return Target{}, errors.New("has an endpoint that is not a URL like https://minio.example.com:9000")
		}
		b.base = e.Scheme + "://" + e.Host + "/" + address.Host + "/"
	}
	if prefix != "" {
		b.prefix += "/"
	}
	return Target{address.Redacted(), b}, nil
}
