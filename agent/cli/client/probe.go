package client

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"satchel/agent/egress"
)

const probeTimeout = 3 * time.Second

// Probe returns an error unless the server at an address, host:port, is ready.
func Probe(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/ready", nil)
	if err != nil {
		return err
	}
	resp, err := egress.New(egress.Policy{
		AllowPrivate:  true,
		DialTimeout:   probeTimeout,
		HeaderTimeout: probeTimeout,
	}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return nil
}
