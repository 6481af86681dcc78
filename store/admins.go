package store

import (
	"context"
	"database/sql"
	"errors"

	"satchel/agent"
)

func scanAdmin(rows *sql.Rows) (a agent.Admin, err error) {
	return a, rows.Scan(&a.ID, &a.Email, &a.Name, &a.Role, &a.CreatedAt)
}

// Admins lists who has a role on the agent, oldest first.
func (db *DB) Admins(ctx context.Context) ([]agent.Admin, error) {
	return Read(ctx, db, (*Tx).admins)
}

func (tx *Tx) admins() ([]agent.Admin, error) {
	return all(tx, scanAdmin, "SELECT id, email, name, role, created_at FROM _admins ORDER BY created_at, id")
}

func (tx *Tx) insertAdmin(a *agent.Admin) error {
	_, err := tx.exec("INSERT INTO _admins(id, email, name, role, created_at) VALUES (?,?,?,?,?)", a.ID, a.Email, a.Name, a.Role, a.CreatedAt)
	return err
}

// CreateAdmin gives a person a role. An email that has one already is a
// conflict.
func (db *DB) CreateAdmin(ctx context.Context, a agent.Admin) (agent.Admin, error) {
	a.Email = agent.NormalEmail(a.Email)
	if err := a.Validate(); err != nil {
		return a, err
	}
	a.ID = agent.NewID(agent.KindAdmin)
	a, err := Write(ctx, db, func(tx *Tx) (agent.Admin, error) {
		a.CreatedAt = tx.Now
		if err := tx.insertAdmin(&a); isUnique(err) {
			return a, agent.Errorf(agent.CodeConflict, "this email has a role on the agent already").With("field", "email").With("issue", "is taken")
		} else if err != nil {
			return a, err
		}
		return a, tx.audit("admin added", map[string]any{"email": a.Email, "role": a.Role})
	})
	if err == nil {
		err = db.refreshRoles(ctx)
	}
	return a, err
}

// DeleteAdmin takes a person's role away. The last owner stays.
func (db *DB) DeleteAdmin(ctx context.Context, id string) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		var none struct{}
		var a agent.Admin
		s, err := tx.prepare("SELECT id, email, name, role, created_at FROM _admins WHERE id = ?")
		if err != nil {
			return none, err
		}
		err = s.QueryRow(id).Scan(&a.ID, &a.Email, &a.Name, &a.Role, &a.CreatedAt)
		if errors.Is(err, sql.ErrNoRows) {
			return none, agent.NotFound("admin entry", id)
		} else if err != nil {
			return none, err
		}
		if a.Role == agent.RoleOwner {
			var owners int
			if err := tx.value(&owners, "SELECT count(*) FROM _admins WHERE role = 'owner'"); err != nil {
				return none, err
			}
			if owners == 1 {
				return none, agent.Errorf(agent.CodeConflict, "the last owner cannot be removed")
			}
		}
		if _, err := tx.exec("DELETE FROM _admins WHERE id = ?", id); err != nil {
			return none, err
		}
		return none, tx.audit("admin removed", map[string]any{"email": a.Email, "role": a.Role})
	})
	if err != nil {
		return err
	}
	return db.refreshRoles(ctx)
}

// NoteName keeps the name that the identity proxy gives a person.
func (db *DB) NoteName(ctx context.Context, email, name string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sql.Result, error) {
		return tx.exec("UPDATE _admins SET name = ? WHERE email = ? AND name <> ?", name, email, name)
	})
	return err
}

// refreshRoles brings the catalog's copy of the roles up to the file.
func (db *DB) refreshRoles(ctx context.Context) error {
	admins, err := db.Admins(ctx)
	if err != nil {
		return err
	}
	roles := make(map[string]agent.Role, len(admins))
	for _, a := range admins {
		roles[a.Email] = a.Role
	}
	db.update(func(r *record) { r.admins = roles })
	return nil
}
