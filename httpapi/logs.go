package httpapi

import (
	"slices"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listLogsIn struct {
	rest.ListParams
	From   agent.Time `query:"from" doc:"Inclusive." format:"date-time"`
	To     agent.Time `query:"to" doc:"Exclusive." format:"date-time"`
	Level  []string   `query:"level" doc:"debug, info, warn or error; may be repeated." example:"info"`
	Source []string   `query:"source" doc:"The component that wrote it; may be repeated." example:"audit"`
}

type logsOut struct {
	Logs []agent.Log `json:"logs"`
	Meta rest.Meta   `json:"meta"`
}

func (s *Server) listLogs(call *rest.Call, in *listLogsIn) (logsOut, error) {
	page, err := in.Page("created_at", "level", "source")
	if err != nil {
		return logsOut{}, err
	}
	levels := []agent.Level{agent.LevelDebug, agent.LevelInfo, agent.LevelWarn, agent.LevelError}
	for _, level := range in.Level {
		if !slices.Contains(levels, agent.Level(level)) {
			return logsOut{}, agent.Invalid("level", "must be debug, info, warn or error")
		}
	}
	logs, total, err := call.DB.Logs(
		call,
		store.LogFilter{
			From:    in.From,
			To:      in.To,
			Levels:  in.Level,
			Sources: in.Source,
		},
		page,
	)
	return logsOut{logs, rest.MetaOf(page, total)}, err
}
