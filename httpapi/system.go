package httpapi

import (
	"cmp"
	"runtime"

	"satchel/agent"
	"satchel/httpapi/rest"
)

type health struct {
	Status string `json:"status" example:"ok"`
}

func (s *Server) health(*rest.Call, *none) (health, error) { return health{"ok"}, nil }

// ready reports whether the default agent's file can be read.
func (s *Server) ready(c *rest.Call, _ *none) (health, error) {
	if _, err := s.folder.Default().Stats(c); err != nil {
		return health{}, agent.Errorf(agent.CodeInternal, "the data folder cannot be read").Because(err)
	}
	return health{"ready"}, nil
}

type version struct {
	Version     string `json:"version" doc:"Version of the program." example:"0.1.0"`
	API         int    `json:"api_version" doc:"Version of the API; changes are only additions." example:"1"`
	Go          string `json:"go_version" example:"go1.26"`
	Open        bool   `json:"open" doc:"There is no access control: everyone acts as owner."`
	DefaultRole string `json:"default_role" enum:"viewer,admin,none" doc:"With access control: the role on the default agent of callers without an identity or an API key." example:"viewer"`
}

func (s *Server) version(*rest.Call, *none) (version, error) {
	return version{Version: s.options.Version, API: 1, Go: runtime.Version(), Open: s.policy.Open(), DefaultRole: cmp.Or(string(s.options.DefaultRole), "none")}, nil
}
