package agent

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRolesOrder(t *testing.T) {
	order := []Role{RoleNone, RoleViewer, RoleAdmin, RoleOwner}
	for i, a := range order {
		for j, b := range order {
			if a.Covers(b) != (i >= j) {
				t.Errorf("%q covers %q: %v", a, b, a.Covers(b))
			}
			if got := a.Weaker(b); got != order[min(i, j)] {
				t.Errorf("the weaker of %q and %q is %q", a, b, got)
			}
		}
	}
	if Role("root").Covers(RoleViewer) || Role("root").Valid() || RoleOwner.Weaker("root").Covers(RoleViewer) {
		t.Error("an unknown role has permissions")
	}
}

func TestRoleOn(t *testing.T) {
	admins := map[string]Role{"own@x": RoleOwner, "adm@x": RoleAdmin, "see@x": RoleViewer}
	key := func(role Role, maker string, agents ...string) *Key {
		return &Key{Role: role, CreatedBy: maker, Agents: agents}
	}
	for name, c := range map[string]struct {
		who   Identity
		agent string
		want  Role
	}{
		"open mode":                        {Identity{Open: true}, "agent-1", RoleOwner},
		"anonymous":                        {Identity{}, "agent-1", RoleNone},
		"anonymous on the default agent":   {Identity{}, DefaultID, RoleAdmin},
		"stranger":                         {Identity{Email: "who@x"}, "agent-1", RoleNone},
		"stranger on the default agent":    {Identity{Email: "who@x"}, DefaultID, RoleAdmin},
		"viewer":                           {Identity{Email: "see@x"}, "agent-1", RoleViewer},
		"viewer on the default agent":      {Identity{Email: "see@x"}, DefaultID, RoleAdmin},
		"owner on the default agent":       {Identity{Email: "own@x"}, DefaultID, RoleOwner},
		"key without creator":              {Identity{Key: key(RoleAdmin, "", "*")}, "agent-1", RoleAdmin},
		"key without creator, other agent": {Identity{Key: key(RoleAdmin, "", "agent-2")}, "agent-1", RoleNone},
		"key weaker than its creator": {
			Identity{Email: "own@x", Key: key(RoleViewer, "own@x", "*")},
			"agent-1",
			RoleViewer,
		},
		"key stronger than its creator": {
			Identity{Email: "see@x", Key: key(RoleOwner, "see@x", "*")},
			"agent-1",
			RoleViewer,
		},
		"key whose creator lost access": {
			Identity{Email: "gone@x", Key: key(RoleOwner, "gone@x", "agent-1")},
			"agent-1",
			RoleNone,
		},
		"key for another agent": {
			Identity{Email: "own@x", Key: key(RoleOwner, "own@x", "agent-2")},
			"agent-1",
			RoleNone,
		},
		"key without the default agent": {
			Identity{Email: "own@x", Key: key(RoleOwner, "own@x", "agent-2")},
			DefaultID,
			RoleNone,
		},
		"key of a stranger on the default": {
			Identity{Email: "who@x", Key: key(RoleOwner, "who@x", "*")},
			DefaultID,
			RoleAdmin,
		},
		"viewer key without creator, default": {Identity{Key: key(RoleViewer, "", DefaultID)}, DefaultID, RoleViewer},
	} {
		if got := c.who.RoleOn(c.agent, admins, RoleAdmin); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		who   Identity
		agent string
		want  Role
	}{
		"open mode":           {Identity{Open: true}, DefaultID, RoleOwner},
		"anonymous":           {Identity{}, DefaultID, RoleNone},
		"stranger":            {Identity{Email: "who@x"}, DefaultID, RoleNone},
		"viewer":              {Identity{Email: "see@x"}, DefaultID, RoleViewer},
		"owner":               {Identity{Email: "own@x"}, DefaultID, RoleOwner},
		"key without creator": {Identity{Key: key(RoleAdmin, "", "*")}, DefaultID, RoleAdmin},
		"key of a stranger": {
			Identity{Email: "who@x", Key: key(RoleOwner, "who@x", "*")},
			DefaultID,
			RoleNone,
		},
		"key stronger than its creator": {
			Identity{Email: "see@x", Key: key(RoleOwner, "see@x", "*")},
			DefaultID,
			RoleViewer,
		},
		"key weaker than its creator": {
			Identity{Email: "own@x", Key: key(RoleViewer, "own@x", "*")},
			DefaultID,
			RoleViewer,
		},
		"key for another agent": {
			Identity{Email: "own@x", Key: key(RoleOwner, "own@x", "agent-2")},
			DefaultID,
			RoleNone,
		},
	} {
		if got := c.who.OwnRole(c.agent, admins); got != c.want {
			t.Errorf("own role, %s: %q, want %q", name, got, c.want)
		}
	}
	if got := (Identity{}).RoleOn(DefaultID, nil, RoleNone); got != RoleNone {
		t.Errorf("anonymous on a closed default agent: %q", got)
	}
}

func TestIdentityLabel(t *testing.T) {
	secret, prefix, hash := NewKeySecret()
	for want, who := range map[string]Identity{
		"anonymous":     {},
		"open mode":     {Open: true},
		"ada@x":         {Email: "ada@x"},
		"key " + prefix: {Email: "ada@x", Key: &Key{Prefix: prefix, Hash: hash}},
	} {
		label := who.Label()
		if label != want || strings.Contains(label, secret) || strings.Contains(label, hash) {
			t.Errorf("%+v is called %q", who, label)
		}
	}
	if (Identity{}).Known() ||
		!(Identity{Open: true}).Known() ||
		!(Identity{Email: "a"}).Known() ||
		!(Identity{Key: &Key{}}).Known() {
		t.Error("Known")
	}
}

func TestKey(t *testing.T) {
	now := At(time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC))
	good := Key{Name: "nightly", Role: RoleAdmin, Agents: []string{AllAgents}}
	check(t, "good", good.Validate(now))
	check(t, "empty", (&Key{}).Validate(now), "name", "role", "agents")
	check(t, "blank entry", (&Key{Name: "n", Role: RoleViewer, Agents: []string{""}}).Validate(now), "agents")
	check(
		t,
		"many",
		(&Key{Name: "n", Role: RoleViewer, Agents: slices.Repeat([]string{"a"}, 1001)}).Validate(now),
		"agents",
	)
	check(
		t,
		"past",
		(&Key{Name: "n", Role: RoleViewer, Agents: []string{"a"}, ExpiresAt: now}).Validate(now),
		"expires_at",
	)

	k := Key{Agents: []string{"agent-1"}, ExpiresAt: At(now.Add(time.Minute))}
	if k.Reaches("agent-2") || !k.Reaches("agent-1") || !good.Reaches("agent-2") {
		t.Error("Reaches")
	}
	if k.Expired(now) || !k.Expired(At(now.Add(time.Minute))) || good.Expired(At(now.AddDate(100, 0, 0))) {
		t.Error("Expired")
	}
	for name, c := range map[string]struct {
		key, other Key
		want       bool
	}{
		"itself": {
			Key{Role: RoleViewer, Agents: []string{"a"}},
			Key{Role: RoleViewer, Agents: []string{"a"}},
			true,
		},
		"a weaker role": {
			Key{Role: RoleAdmin, Agents: []string{"a"}},
			Key{Role: RoleViewer, Agents: []string{"a"}},
			true,
		},
		"a stronger role": {
			Key{Role: RoleViewer, Agents: []string{"a"}},
			Key{Role: RoleAdmin, Agents: []string{"a"}},
			false,
		},
		"fewer agents": {
			Key{Role: RoleAdmin, Agents: []string{"a", "b"}},
			Key{Role: RoleAdmin, Agents: []string{"b"}},
			true,
		},
		"another agent": {
			Key{Role: RoleOwner, Agents: []string{"a"}},
			Key{Role: RoleViewer, Agents: []string{"a", "b"}},
			false,
		},
		"all agents": {
			Key{Role: RoleOwner, Agents: []string{"a"}},
			Key{Role: RoleViewer, Agents: []string{AllAgents}},
			false,
		},
		"of all agents": {
			Key{Role: RoleViewer, Agents: []string{AllAgents}},
			Key{Role: RoleViewer, Agents: []string{"a"}},
			true,
		},
	} {
		if got := c.key.Covers(&c.other); got != c.want {
			t.Errorf("covers %s: %v", name, got)
		}
	}
	for name, c := range map[string]struct{ ends, maker, want Time }{
		"both permanent":     {Time{}, Time{}, Time{}},
		"permanent creator":  {now, Time{}, now},
		"no expiry":          {Time{}, now, now},
		"before the creator": {now, At(now.Add(time.Hour)), now},
		"with the creator":   {now, now, now},
	} {
		made := Key{ExpiresAt: c.ends}
		if err := made.LimitExpiry(&Key{ExpiresAt: c.maker}); err != nil || made.ExpiresAt != c.want {
			t.Errorf("%s: expires %v, %v", name, made.ExpiresAt, err)
		}
	}
	late := Key{ExpiresAt: At(now.Add(time.Hour))}
	if err := late.LimitExpiry(&Key{ExpiresAt: now}); ErrorCode(err) != CodeForbidden {
		t.Errorf("after the creator: %v", err)
	}
	secret, prefix, hash := NewKeySecret()
	other, _, _ := NewKeySecret()
	if !strings.HasPrefix(secret, "satchel_") ||
		!strings.HasPrefix(secret, prefix) ||
		len(secret) != 72 ||
		secret == other ||
		hash != HashKey(secret) ||
		len(hash) != 64 {
		t.Errorf("key %q, prefix %q, hash %q", secret, prefix, hash)
	}
}
