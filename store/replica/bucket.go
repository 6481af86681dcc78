package replica

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/agent/egress"
	"satchel/agent/signature"
)

// bucket is a storage accessed through Amazon's S3 API
// (https://docs.aws.amazon.com/AmazonS3/latest/API/).
type bucket struct {
	base   string // URL of the bucket, with a trailing slash
	prefix string // of keys, empty or with a trailing slash
	region string
	key    signature.AWSKey
	client *egress.Client
}

// Limits of requests: the time for the response, plus the size divided by minBytesPerSecond,
// and the size of responses other than objects.
const (
	requestTime       = time.Minute
	minBytesPerSecond = 256 << 10
	maxAnswer         = 8 << 20
)

// send sends a request and returns the response, whose body the caller closes.
func (b *bucket) send(
	ctx context.Context,
	method, key string,
	query url.Values,
	body io.ReaderAt,
	size int64,
) (*http.Response, error) {
	address := b.base + key
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(body, 0, size)), nil
		}
		req.Body, _ = req.GetBody()
		req.ContentLength = size
	}
	if err := signature.SignAWS(req, b.key, b.region, "s3", time.Now()); err != nil {
		return nil, err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp, method != http.MethodPut && key != "")
}

// refusal returns the error that a response reports. ofObject is whether the request was
// for an object that may not exist.
func refusal(resp *http.Response, ofObject bool) error {
	var answer struct{ Code, Message string }
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil {
		_ = xml.Unmarshal(raw, &answer) // HEAD and some proxies send none
	}
	switch {
	case resp.StatusCode == http.StatusNotFound && ofObject && answer.Code != "NoSuchBucket":
		return errNoObject
	case answer.Code == "" && resp.StatusCode/100 == 4:
		return fmt.Errorf(
			"the bucket answers %d %s and not as S3 does: is the endpoint the one of its S3 API?",
			resp.StatusCode,
			http.StatusText(resp.StatusCode),
		)
	}
	return fmt.Errorf(
		"the bucket answers %d %s",
		resp.StatusCode,
		cmp.Or(strings.TrimSpace(answer.Code+" "+answer.Message), http.StatusText(resp.StatusCode)),
	)
}

func (b *bucket) prepare(bool) error { return nil }

func (b *bucket) put(ctx context.Context, key string, body io.ReaderAt, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime+time.Duration(size/minBytesPerSecond)*time.Second)
	defer cancel()
	resp, err := b.send(ctx, http.MethodPut, b.prefix+key, nil, body, size)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (b *bucket) get(ctx context.Context, key string) (io.ReadCloser, error) {
	resp, err := b.send(ctx, http.MethodGet, b.prefix+key, nil, nil, 0)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func (b *bucket) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	resp, err := b.send(ctx, http.MethodDelete, b.prefix+key, nil, nil, 0)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (b *bucket) list(ctx context.Context, prefix string) ([]string, error) {
	keys, _, err := b.pages(ctx, prefix, "")
	return keys, err
}

func (b *bucket) folders(ctx context.Context) ([]string, error) {
	_, names, err := b.pages(ctx, "", "/")
	return names, err
}

// page is a response of ListObjectsV2.
type page struct {
	Contents              []struct{ Key string }
	CommonPrefixes        []struct{ Prefix string }
	IsTruncated           bool
	NextContinuationToken string
}

// pages lists the keys under a prefix and, with a delimiter, the common prefixes.
func (b *bucket) pages(ctx context.Context, prefix, delimiter string) (keys, folders []string, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {b.prefix + prefix}}
	if delimiter != "" {
		query.Set("delimiter", delimiter)
	}
	for {
		p, err := b.page(ctx, query)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range p.Contents {
			keys = append(keys, strings.TrimPrefix(c.Key, b.prefix))
		}
		for _, c := range p.CommonPrefixes {
			folders = append(folders, strings.TrimSuffix(strings.TrimPrefix(c.Prefix, b.prefix), "/"))
		}
		if !p.IsTruncated || p.NextContinuationToken == "" {
			return keys, folders, nil
		}
		query.Set("continuation-token", p.NextContinuationToken)
	}
}

func (b *bucket) page(ctx context.Context, query url.Values) (page page, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	resp, err := b.send(ctx, http.MethodGet, "", query, nil, 0)
	if err != nil {
		return page, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = xml.Unmarshal(raw, &page)
	}
	if err != nil {
		return page, fmt.Errorf("read the bucket's list: %w", err)
	}
	return page, nil
}
