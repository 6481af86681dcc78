package credentials

import (
	_ "embed"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"satchel/agent"
)

// Preset describes a known service. {name} in hosts, config and secret is
// replaced by the value of a field.
type Preset struct {
	ID       string                 `json:"id" example:"github"`
	Title    string                 `json:"title" example:"GitHub"`
	Category string                 `json:"category" example:"Development"`
	Type     agent.CredentialType   `json:"type" enum:"header,query,basic,oauth2,aws,env" example:"header"`
	Hosts    []string               `json:"hosts" example:"[\"api.github.com\"]"`
	Config   agent.CredentialConfig `json:"config"`
	Secret   map[string]string      `json:"secret" doc:"How the secret is made of the fields." example:"{\"Authorization\":\"Bearer {token}\"}"`
	Fields   []PresetField          `json:"fields" doc:"What to ask for."`
	KeysURL  string                 `json:"keys_url" doc:"Page where the key or the OAuth client is created." example:"https://github.com/settings/tokens"`
	DocsURL  string                 `json:"docs_url" doc:"The provider's documentation."`
	Note     string                 `json:"note" doc:"Further information."`
	Checked  bool                   `json:"checked" doc:"Hosts and addresses were compared with the provider's documentation."`
}

// PresetField is a value that a preset asks for.
type PresetField struct {
	Name    string `json:"name" example:"token"`
	Label   string `json:"label" example:"Personal access token"`
	Hint    string `json:"hint"`
	Secret  bool   `json:"secret"`
	Default string `json:"default"`
}

//go:embed presets.json
var presetFile []byte

var presets = sync.OnceValue(func() []Preset {
	var all []Preset
	if err := json.Unmarshal(presetFile, &all); err != nil {
		panic(err) // a test reads it
	}
	for i := range all {
		p := &all[i]
		if p.Fields == nil {
			p.Fields = []PresetField{}
		}
		if p.Secret == nil {
			p.Secret = map[string]string{}
		}
	}
	agent.Sort(all, func(a, b Preset) int {
		return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
	})
	return all
})

// Presets returns the presets whose title, id or category contains every word of a
// search.
func Presets(search string) []Preset {
	found := []Preset{}
	words := strings.Fields(strings.ToLower(search))
	for _, p := range presets() {
		text := strings.ToLower(p.ID + " " + p.Title + " " + p.Category)
		if !slices.ContainsFunc(words, func(w string) bool {
			return !strings.Contains(text, w)
		}) {
			found = append(found, p)
		}
	}
	return found
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// FillPreset returns the credential of a preset and its secret, with the fields
// replaced by values.
func FillPreset(id string, values map[string]string) (agent.Credential, map[string]string, error) {
	at := slices.IndexFunc(presets(), func(p Preset) bool { return p.ID == id })
	if at < 0 {
		return agent.Credential{}, nil, agent.Invalid("preset", "names no preset; see /api/credential-presets")
	}
	preset := presets()[at]
	given, err := preset.values(values)
	if err != nil {
		return agent.Credential{}, nil, err
	}
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			return given[found[1:len(found)-1]]
		})
	}
	credential := agent.Credential{
		Preset: preset.ID,
		Type:   preset.Type,
		Hosts:  []string{},
	}
	for _, host := range preset.Hosts {
		credential.Hosts = append(credential.Hosts, fill(host))
	}
	raw, err := json.Marshal(preset.Config)
	if err != nil {
		return credential, nil, err
	}
	// Values stand in JSON strings here, so they are escaped as such.
	filled := placeholder.ReplaceAllStringFunc(string(raw), func(found string) string {
		quoted, _ := json.Marshal(given[found[1:len(found)-1]])
		return string(quoted[1 : len(quoted)-1])
	})
	if err := json.Unmarshal([]byte(filled), &credential.Config); err != nil {
		return credential, nil, err
	}
	secret := map[string]string{}
	for name, value := range preset.Secret {
		if text := fill(value); text != "" {
			secret[name] = text
		}
	}
	return credential, secret, nil
}

// values checks the values for a preset's fields, and adds their defaults.
func (p *Preset) values(given map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, f := range p.Fields {
		out[f.Name] = strings.TrimSpace(given[f.Name])
		if out[f.Name] == "" {
			out[f.Name] = f.Default
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := out[name]; !known {
			return nil, agent.Invalid("values."+agent.Clip(name, 60), "is not asked for by this preset")
		}
	}
	for _, host := range p.Hosts {
		for _, found := range placeholder.FindAllStringSubmatch(host, -1) {
			if value := out[found[1]]; !hostPart.MatchString(value) {
				return nil, agent.Invalid(
					"values."+found[1],
					"must be part of a host name, without https:// and slashes",
				)
			}
		}
	}
	return out, nil
}

var hostPart = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`)
