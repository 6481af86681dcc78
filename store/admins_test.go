package store

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"satchel/agent"
)

func TestAdmins(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	ctx := WithActor(t.Context(), "own@x.y")
	db, err := f.CreateAgent(ctx, agent.Agent{Name: "a"}, "own@x.y")
	if err != nil {
		t.Fatal(err)
	}
	ada, err := db.CreateAdmin(ctx, agent.Admin{Email: " Ada@Example.com ", Role: agent.RoleViewer})
	if err != nil || ada.Email != "ada@example.com" || ada.ID == "" || ada.CreatedAt.IsZero() {
		t.Fatalf("%+v, %v", ada, err)
	}
	_, err = db.CreateAdmin(ctx, agent.Admin{Email: "ADA@example.com", Role: agent.RoleOwner})
	wantCode(t, err, agent.CodeConflict)
	_, err = db.CreateAdmin(ctx, agent.Admin{Email: "nobody", Role: "king"})
	wantCode(t, err, agent.CodeValidation)
	if !maps.Equal(db.Roles(), map[string]agent.Role{"own@x.y": agent.RoleOwner, "ada@example.com": agent.RoleViewer}) {
		t.Errorf("roles %v", db.Roles())
	}
	if err := db.NoteName(ctx, "ada@example.com", "Ada L."); err != nil {
		t.Fatal(err)
	}
	admins, err := db.Admins(ctx)
	if err != nil || len(admins) != 2 || admins[1].Name != "Ada L." {
		t.Fatalf("%+v, %v", admins, err)
	}
	owner := admins[0]
	wantCode(t, db.DeleteAdmin(ctx, owner.ID), agent.CodeConflict)
	wantCode(t, db.DeleteAdmin(ctx, "admin-unknown"), agent.CodeNotFound)
	for id, code := range map[string]agent.Code{owner.ID: agent.CodeConflict, "admin-unknown": agent.CodeNotFound} {
		_, err = db.UpdateAdmin(ctx, id, agent.RoleViewer)
		wantCode(t, err, code)
	}
	_, err = db.UpdateAdmin(ctx, ada.ID, "king")
	wantCode(t, err, agent.CodeValidation)
	if _, err = db.UpdateAdmin(ctx, owner.ID, agent.RoleOwner); err != nil {
		t.Errorf("an owner that stays one: %v", err)
	}
	if a, err := db.UpdateAdmin(ctx, ada.ID, agent.RoleAdmin); err != nil ||
		a.Role != agent.RoleAdmin ||
		a.Email != "ada@example.com" ||
		db.Roles()["ada@example.com"] != agent.RoleAdmin {
		t.Errorf("%+v, %v, roles %v", a, err, db.Roles())
	}
	if _, err := db.CreateAdmin(ctx, agent.Admin{Email: "second@x.y", Role: agent.RoleOwner}); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteAdmin(ctx, owner.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteAdmin(ctx, ada.ID); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(db.Roles(), map[string]agent.Role{"second@x.y": agent.RoleOwner}) {
		t.Errorf("roles %v", db.Roles())
	}
	closeFolder(t, f)
	if again := byName(t, openAt(t, f.Path()), "a"); !maps.Equal(again.Roles(), db.Roles()) {
		t.Errorf("after a restart %v", again.Roles())
	}
}

// The catalog's roles decide about access, so they must match the file whatever the order
// in which concurrent changes finish.
func TestRolesFollowConcurrentChanges(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "own@x.y")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for n := range 20 {
		running.Go(func() {
			a, err := db.CreateAdmin(t.Context(), agent.Admin{Email: fmt.Sprintf("a%d@x.y", n), Role: agent.RoleAdmin})
			if err == nil && n%2 == 0 {
				err = db.DeleteAdmin(t.Context(), a.ID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	want := map[string]agent.Role{"own@x.y": agent.RoleOwner}
	for n := 1; n < 20; n += 2 {
		want[fmt.Sprintf("a%d@x.y", n)] = agent.RoleAdmin
	}
	if !maps.Equal(db.Roles(), want) {
		t.Errorf("got %v\nwant %v", db.Roles(), want)
	}
}

func TestLastOwnerStaysUnderConcurrency(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "own0@x.y")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 6; n++ {
		if _, err := db.CreateAdmin(t.Context(), agent.Admin{
			Email: fmt.Sprintf("own%d@x.y", n),
			Role:  agent.RoleOwner,
		}); err != nil {
			t.Fatal(err)
		}
	}
	admins, err := db.Admins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for _, a := range admins {
		running.Go(func() {
			if err := db.DeleteAdmin(t.Context(), a.ID); err != nil && agent.ErrorCode(err) != agent.CodeConflict {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if len(db.Roles()) != 1 {
		t.Errorf("owners left: %v", db.Roles())
	}
}
