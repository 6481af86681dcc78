package httpapi

import (
	"reflect"

	"satchel/agent/chat"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

// Describe returns the OpenAPI 3.1 description of the API as JSON. It needs no
// running server; the same version always gives the same bytes.
func Describe(version string) ([]byte, error) {
	s := &Server{options: Options{Version: version}}
	s.table = s.api()
	return s.description().Describe()
}

// description returns the route table with the names used in its description.
func (s *Server) description() *rest.API {
	return &rest.API{
		Title:        "Satchel",
		Version:      s.options.Version,
		About:        about,
		URL:          s.options.PublicURL,
		Routes:       s.table,
		Areas:        areasOf,
		OperationIDs: irregularIDs,
		Components:   componentNames,
		SchemeOrder:  []string{"identityProxy", "bearerKey", "headerKey"},
		Schemes: map[string]rest.Scheme{
			"identityProxy": {
				Type: "apiKey",
				In:   "header",
				Name: auth.TokenHeaders[0],
				Description: "The token of the identity proxy in front of the server. " +
					auth.TokenHeaders[1] + " is read as well.",
			},
			"bearerKey": {Type: "http", Scheme: "bearer", Description: "An API key, made with POST /keys."},
			"headerKey": {
				Type:        "apiKey",
				In:          "header",
				Name:        auth.KeyHeader,
				Description: "The same API key in a header of its own.",
			},
		},
		Aliases: map[reflect.Type]reflect.Type{ // for fields that accept several JSON types, keyed by their Go types
			reflect.TypeFor[store.Params](): reflect.TypeFor[any](),
			reflect.TypeFor[chat.Choice]():  reflect.TypeFor[any](),
			reflect.TypeFor[text]():         reflect.TypeFor[any](),
			reflect.TypeFor[texts]():        reflect.TypeFor[any](),
		},
		ErrorTypes:    map[string]reflect.Type{"OpenAI": reflect.TypeFor[openAIError]()},
		DefaultAnswer: "The status, headers and body of the workflow's webhook-response node.",
	}
}

const about = `Satchel keeps agents: each has knowledge that can be searched, contacts, conversations and a database, all in one SQLite file.

Every list takes limit and offset and answers meta beside its named array. Unknown fields of a request are ignored. Every error is {"error": {"code", "message", "details"}}. Changes to this interface only add.`

// openAPIFile serves the description, which is built on first use.
func (s *Server) openAPIFile(c *rest.Call) error {
	document, err := s.describe()
	if err != nil {
		return err
	}
	return document.Serve(c.HTTP)
}
