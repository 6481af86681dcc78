package cluster

import (
	"net"
	"testing"
	"time"

	"satchel/agent"
)

func TestDue(t *testing.T) {
	at := agent.At(time.Unix(1000, 0))
	none, some := agentRow{}, agentRow{}
	some.summary.Pending.Messages, some.summary.Pending.Schedules = agent.At(time.Unix(2000, 0)), at
	if !some.due().Equal(at.Time) || !none.due().After(some.due()) {
		t.Errorf("due %v and %v", some.due(), none.due())
	}
}

func TestRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	if refuses(address) {
		t.Error("a listener refuses")
	}
	_ = l.Close()
	if !refuses(address) {
		t.Error("a listener that was closed does not refuse")
	}
	if refuses("http://name.invalid:1") || refuses("://") {
		t.Error("a name that does not exist refuses")
	}
}
