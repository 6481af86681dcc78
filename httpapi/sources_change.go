package httpapi

import (
	"satchel/agent"
	"satchel/httpapi/rest"
)

// maxSourceChange limits the sources of one change.
const maxSourceChange = 200

type changeSourcesIn struct {
	Body struct {
		IDs     []string `json:"ids" required:"true" doc:"At most 200 ids." example:"[\"source-06f1q2s3t4v5a6b7c8d9\"]"`
		Delete  bool     `json:"delete,omitempty" doc:"true: delete the sources with their chunks."`
		Reindex bool     `json:"reindex,omitempty" doc:"true: read and embed the sources again; sources that are being processed are left out." example:"true"`
	}
}

type changeSourcesOut struct {
	Changed []string `json:"changed" doc:"Ids of the sources that were deleted, or are read again." example:"[\"source-06f1q2s3t4v5a6b7c8d9\"]"`
}

func (s *Server) changeSources(call *rest.Call, in *changeSourcesIn) (out changeSourcesOut, err error) {
	b := in.Body
	if n := len(b.IDs); n == 0 || n > maxSourceChange {
		return out, agent.Invalid("ids", "must have 1 to 200 entries")
	}
	switch {
	case b.Delete && b.Reindex:
		err = agent.Invalid("delete", "cannot be combined with reindex")
	case b.Delete:
		out.Changed, err = call.DB.DeleteSources(call, b.IDs)
	case b.Reindex:
		out.Changed, err = call.DB.ReindexSources(call, b.IDs)
	default:
		err = agent.Invalid("reindex", "or delete is required")
	}
	return out, err
}
