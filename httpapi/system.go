package httpapi

import (
	"runtime"
	"time"

	"satchel/agent"
	"satchel/httpapi/rest"
)

type health struct {
	Status      string `json:"status" example:"ok"`
	Replication string `json:"replication,omitempty" enum:"ok,behind,failing" doc:"Whether replicas of the agents are up to date, where the server keeps any." example:"ok"`
}

// maxReplicaLag is how long a commit may wait for its upload before replicas count as
// behind.
const maxReplicaLag = 10 * time.Second

func (s *Server) health(*rest.Call, *none) (health, error) {
	h := health{Status: "ok"}
	if s.options.Replicas != nil {
		switch r := s.options.Replicas.Status(); {
		case r.Failure != nil:
			h.Replication = "failing"
		case r.Snapshots > 0 || r.Behind > maxReplicaLag:
			h.Replication = "behind"
		default:
			h.Replication = "ok"
		}
	}
	return h, nil
}

// ready reports whether the default agent's file can be read, or in a cluster whether
// this server may answer for its agents.
func (s *Server) ready(c *rest.Call, _ *none) (health, error) {
	if s.options.Cluster != nil {
		if err := s.options.Cluster.Ready(); err != nil {
			return health{}, agent.Errorf(
				agent.CodeUnavailable,
				"this server has lost the connection to its cluster",
			).Because(err)
		}
		return health{Status: "ready"}, nil
	}
	if _, err := s.folder.Default().Stats(c); err != nil {
		return health{}, agent.Errorf(agent.CodeInternal, "the data folder cannot be read").Because(err)
	}
	return health{Status: "ready"}, nil
}

type version struct {
	Version     string `json:"version" doc:"Version of the program." example:"0.1.0"`
	API         int    `json:"api_version" doc:"Version of the API; changes are only additions." example:"1"`
	Go          string `json:"go_version" example:"go1.26"`
	Open        bool   `json:"open" doc:"There is no access control: everyone acts as owner."`
	DefaultRole string `json:"default_role" enum:"viewer,admin,none" doc:"With access control: the role on the default agent of callers without an identity or an API key." example:"viewer"`
}

func (s *Server) version(*rest.Call, *none) (version, error) {
	return version{
		Version:     s.options.Version,
		API:         1,
		Go:          runtime.Version(),
		Open:        s.policy.Open(),
		DefaultRole: s.policy.DefaultRole().Name(),
	}, nil
}
