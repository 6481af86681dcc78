package httpapi

import (
	"slices"

	"satchel/agent"
	"satchel/httpapi/rest"
)

type keysOut struct {
	Keys []*agent.Key `json:"keys"`
	Meta rest.Meta    `json:"meta"`
}

func (s *Server) manageableKeys(c *rest.Call) ([]*agent.Key, error) {
	keys, err := s.folder.Keys(c)
	return slices.DeleteFunc(keys, func(k *agent.Key) bool {
		return !s.policy.MayManage(c.Identity, k)
	}), err
}

func (s *Server) listKeys(c *rest.Call, in *rest.ListParams) (keysOut, error) {
	page, err := in.Page()
	if err != nil {
		return keysOut{}, err
	}
	keys, err := s.manageableKeys(c)
	keys = slices.DeleteFunc(keys, func(k *agent.Key) bool {
		return !mentions(page.Search, k.Name, k.Prefix)
	})
	return keysOut{rest.Cut(keys, page), rest.MetaOf(page, len(keys))}, err
}

type createKeyIn struct {
	Body struct {
		Name      string     `json:"name" required:"true" doc:"Name of the key." example:"nightly import"`
		Role      agent.Role `json:"role" required:"true" enum:"owner,admin,viewer" example:"admin"`
		Agents    []string   `json:"agents" required:"true" doc:"Agent ids or names, or [\"*\"] for every agent that the key's creator can access." example:"[\"*\"]"`
		ExpiresAt agent.Time `json:"expires_at,omitempty" types:"string" doc:"A time, or a date, which means its midnight." example:"2030-01-31T09:00:00Z"`

		DefaultRole agent.Optional[string] `json:"default_role,omitempty" enum:"viewer,none" doc:"For the first key, which closes the server: viewer lets callers without an identity or an API key read the default agent, none does not. It is the same choice as that of PUT /api/access." example:"none"`
	}
}

// keyOut is a key with its secret, which is only shown once.
type keyOut struct {
	agent.Key
	Secret string    `json:"key" doc:"The key. It is only shown once and stored as a hash." example:"satchel_…"`
	Access accessOut `json:"access" doc:"Who may use the server now."`
}

func keyLocation(_ *rest.Call, out any) string {
	return "/api/keys/" + out.(keyOut).ID
}

func (s *Server) createKey(call *rest.Call, in *createKeyIn) (keyOut, error) {
	key := agent.Key{
		Name:      in.Body.Name,
		Role:      in.Body.Role,
		Agents:    slices.Clone(in.Body.Agents),
		ExpiresAt: in.Body.ExpiresAt,
		CreatedBy: call.Identity.Email,
	}
	if err := key.Validate(agent.Now()); err != nil {
		return keyOut{}, err
	}
	if own := call.Identity.Key; own != nil {
		key.Parent = own.ID
	}
	if err := s.policy.LimitKey(call.Identity, &key); err != nil {
		return keyOut{}, err
	}
	var choice *agent.Role
	if in.Body.DefaultRole.Given && !in.Body.DefaultRole.Null {
		var err error
		if choice, err = s.choice(call, in.Body.DefaultRole); err != nil {
			return keyOut{}, err
		}
	}
	closes := s.policy.Open()
	key, secret, err := s.folder.CreateKeyChoosing(call, key, choice)
	if err != nil {
		return keyOut{}, err
	}
	access, err := s.access(call)
	if closes && access.Warning != "" {
		s.log.Warn("an API key closed this server", "warning", access.Warning)
	}
	return keyOut{key, secret, access}, err
}

type keyIn struct {
	ID string `path:"keyId" doc:"Id of the key." example:"key-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) deleteKey(c *rest.Call, in *keyIn) (none, error) {
	keys, err := s.manageableKeys(c)
	if err != nil {
		return none{}, err
	}
	if !slices.ContainsFunc(keys, func(k *agent.Key) bool { return k.ID == in.ID }) {
		return none{}, agent.NotFound("key", in.ID)
	}
	return none{}, s.folder.DeleteKey(c, in.ID)
}
