package rest

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"satchel/agent"
)

// answerHeaders are the headers of responses.
var answerHeaders = map[string]*huma.Param{
	"X-Request-Id":          header(huma.TypeString, "Names this request in the server's log."),
	"X-API-Version":         header(huma.TypeInteger, "Version of this interface."),
	"X-RateLimit-Limit":     header(huma.TypeInteger, "Requests a minute that this client may make of this kind."),
	"X-RateLimit-Remaining": header(huma.TypeInteger, "How many of them are left in this minute."),
	"X-RateLimit-Reset":     header(huma.TypeInteger, "When the minute ends, in Unix seconds."),
	"Retry-After":           header(huma.TypeInteger, "Seconds to wait."),
	"Location":              header(huma.TypeString, "Address of what was made."),
	"Content-Disposition":   header(huma.TypeString, "A name to keep the file under."),
	"ETag": header(
		huma.TypeString,
		"Names what was answered. Of what never changes, send it as If-None-Match: 304 says that it is the same; "+
			"of a workflow it is the version, send it as If-Match with a change.",
	),
}

func header(kind, doc string) *huma.Param {
	return &huma.Param{Description: doc, Schema: &huma.Schema{Type: kind}}
}

func headerRefs(names ...string) map[string]*huma.Param {
	refs := map[string]*huma.Param{}
	for _, name := range names {
		refs[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return refs
}

var rateHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// headersOf returns the headers of a route's successful response.
func headersOf(r *Route) map[string]*huma.Param {
	names := []string{"X-Request-Id", "X-API-Version"}
	if r.Class != Unlimited {
		names = append(names, rateHeaders...)
	}
	if r.Status == http.StatusCreated {
		names = append(names, "Location")
	}
	if r.Attached {
		names = append(names, "Content-Disposition")
	}
	if r.tagged {
		names = append(names, "ETag")
	}
	return headerRefs(names...)
}

// failureStatuses returns the statuses of the errors that a route can return. Every route
// can fail on an invalid key (401), an unknown Host (403) and internal errors (500).
func failureStatuses(route *Route) []int {
	statuses := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError}
	if len(route.Parameters()) > 0 || route.HasBody() || route.Form != nil {
		statuses = append(statuses, http.StatusBadRequest)
	}
	if route.MaxBody() > 0 {
		statuses = append(
			statuses,
			http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType,
			http.StatusServiceUnavailable,
		)
	}
	if route.UnderAgent() {
		statuses = append(statuses, http.StatusServiceUnavailable) // in a cluster
	}
	if strings.Contains(route.Path, "{") {
		statuses = append(statuses, http.StatusNotFound)
	}
	if route.Class != Unlimited {
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	for _, code := range route.Errors {
		statuses = append(statuses, StatusOf(code))
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// failure returns a reference to the shared response for a status, which it creates on
// first use.
func (d *description) failure(route *Route, status int) *huma.Response {
	name, body := strings.ReplaceAll(http.StatusText(status), " ", ""), reflect.TypeFor[ErrorBody]()
	if own, ok := d.api.ErrorTypes[d.api.Area(route)]; ok {
		name, body = d.api.Area(route)+name, own
	}
	if d.failures[name] == nil {
		media := &huma.MediaType{Schema: d.types.schema(body, ""), Examples: map[string]*huma.Example{}}
		for _, e := range sampleErrors {
			if StatusOf(e.Code) == status {
				media.Examples[string(e.Code)] = &huma.Example{Value: BodyOf(e)}
			}
		}
		headers := headerRefs("X-Request-Id", "X-API-Version")
		switch status {
		case http.StatusTooManyRequests:
			headers = headerRefs(append([]string{"X-Request-Id", "X-API-Version", "Retry-After"}, rateHeaders...)...)
		case http.StatusServiceUnavailable:
			headers = headerRefs("X-Request-Id", "X-API-Version", "Retry-After")
		}
		d.failures[name] = &huma.Response{
			Description: failureDocs[status],
			Headers:     headers,
			Content:     map[string]*huma.MediaType{"application/json": media},
		}
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// failureDocs describe what each status means.
var failureDocs = map[int]string{
	http.StatusBadRequest:            "The request is not right; details name the field.",
	http.StatusUnauthorized:          "An identity is needed, or the one that was sent is not valid.",
	http.StatusForbidden:             "The caller may not do this.",
	http.StatusNotFound:              "There is no such record.",
	http.StatusRequestTimeout:        "It was not done in time.",
	http.StatusConflict:              "The request does not fit what is there.",
	http.StatusRequestEntityTooLarge: "The body or the file is too large.",
	http.StatusUnsupportedMediaType:  "The body or the file is of a kind that is not read here.",
	http.StatusTooManyRequests:       "Too many requests in this minute.",
	http.StatusInternalServerError:   "Something failed on this side.",
	http.StatusServiceUnavailable: "This server receives too much at present, or no server of the " +
		"cluster answers for this agent.",
}

// sampleErrors has one error of every code.
var sampleErrors = []*agent.Error{
	agent.Invalid("name", "is required"),
	agent.Errorf(agent.CodeInvalidJSON, "the request body is not JSON: error at byte %d", 17).With("offset", 17),
	agent.Errorf(agent.CodeInvalidQuery, "the statement is not valid SQL"),
	agent.Errorf(agent.CodeInvalidFile, "file has a schema that was not created by Satchel").
		With("field", "file").
		With("issue", "has a schema that is not as Satchel makes it"),
	agent.Errorf(agent.CodeUnauthorized, "this API key is unknown or expired"),
	agent.Errorf(agent.CodeForbidden, "you have no access to this agent"),
	agent.Errorf(agent.CodeForbiddenOperation, "this kind of statement is not allowed"),
	agent.Errorf(agent.CodeAgentDisabled, "this agent is disabled; set its status to active to use it"),
	agent.NotFound("contact", "contact-06f1q2s3t4v5a6b7c8d9"),
	agent.Errorf(agent.CodeMethodNotAllowed, "this path does not support that method"),
	agent.Errorf(agent.CodeAgentNameExists, "another agent has this name").With("field", "name"),
	agent.Errorf(agent.CodeCredentialLogin, "this credential needs a login: connect it").With("field", "credential"),
	agent.Errorf(agent.CodeDuplicateContact, "another contact has this email").
		With("field", "email").
		With("existing_id", "contact-06f1q2s3t4v5a6b7c8d9"),
	agent.Errorf(agent.CodeConflict, "this source is being processed; wait until it is done"),
	agent.Errorf(
		agent.CodeAlreadyRunning,
		"an execution of this workflow is running; its settings allow %d at a time",
		1,
	).With("workflow_id", "workflow-06f1q2s3t4v5a6b7c8d9").With("concurrency", 1),
	agent.Errorf(agent.CodeFileTooLarge, "a file may have at most %d MB", 25).
		With("field", "file").
		With("limit_bytes", 25<<20),
	agent.Errorf(agent.CodeUnsupportedFormat, "this kind of file is not supported").With("field", "file"),
	agent.Errorf(agent.CodeRateLimited, "too many requests: the limit is %d per minute", 100).
		With("limit", 100).
		With("window_seconds", 60).
		With("retry_after", 12),
	agent.Errorf(agent.CodeBudget, "one execution started %d others within a minute, which is the limit", 1000),
	agent.Errorf(agent.CodeExecution, "the statement took too long"),
	agent.Errorf(
		agent.CodeUpstream,
		"the service answered with status %s",
		strconv.Itoa(http.StatusBadGateway),
	).With("status", http.StatusBadGateway),
	agent.Errorf(agent.CodeInvalidAction, "selector is required").With("field", "selector").With("action", "click"),
	agent.Errorf(agent.CodeActionTimeout, "click was not done within %d ms", 30000).
		With("action", "click").
		With("selector", "#send").
		With("timeout", 30000),
	agent.Errorf(agent.CodeBrowser, "the browser ended unexpectedly; open a new session"),
	agent.Errorf(agent.CodeUnavailable, "the server that owns this agent is not responding; try again"),
	agent.Errorf(
		agent.CodeInternal,
		"internal error; the server's log has details for the X-Request-Id of this response",
	),
	agent.Errorf(agent.CodeAgentDamaged, "this agent's file is damaged"),
	agent.Errorf(agent.CodeAgentNewer, "this agent's file is from a newer version of the program"),
	agent.Errorf(agent.CodeDiskFull, "the disk is full"),
	agent.Errorf(agent.CodeReadOnly, "the data folder cannot be written"),
}
