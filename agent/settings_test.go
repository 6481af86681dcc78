package agent

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestDefaultSettingsAreValid(t *testing.T) {
	s := DefaultSettings()
	check(t, "defaults", s.Validate())
}

func TestSettingsValidate(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"openai": {`{"llm_provider":"openai","llm_model":"gpt","llm_temperature":2,"llm_max_tokens":100}`, nil},
		"base address": {
			`{"llm_base_url":"https://models.example/v1","embedding_base_url":"http://10.0.0.1:8080/v1"}`,
			nil,
		},
		"provider":    {`{"llm_provider":"skynet"}`, []string{"llm_provider"}},
		"temperature": {`{"llm_temperature":2.01}`, []string{"llm_temperature"}},
		"cold":        {`{"llm_temperature":-0.1}`, []string{"llm_temperature"}},
		"tokens":      {`{"llm_max_tokens":-1}`, []string{"llm_max_tokens"}},
		"scheme":      {`{"llm_base_url":"file:///etc/passwd"}`, []string{"llm_base_url"}},
		"relative":    {`{"llm_base_url":"/v1"}`, []string{"llm_base_url"}},
		"userinfo":    {`{"llm_base_url":"https://me:pw@models.example/v1"}`, []string{"llm_base_url"}},
		"long address": {
			`{"llm_base_url":"https://x/` + strings.Repeat("y", maxURLLength) + `"}`,
			[]string{"llm_base_url"},
		},
		"zone":         {`{"timezone":"Europe/Berlin"}`, nil},
		"no zone":      {`{"timezone":"Mars/Olympus"}`, []string{"timezone"}},
		"local zone":   {`{"timezone":"Local"}`, []string{"timezone"}},
		"path as zone": {`{"timezone":"../../etc/passwd"}`, []string{"timezone"}},
		"retention":    {`{"retention_days":0}`, []string{"retention_days"}},
		"forever":      {`{"retention_days":3651}`, []string{"retention_days"}},
		"embedder":     {`{"embedding_provider":"psychic"}`, []string{"embedding_provider"}},
		"several": {
			`{"llm_model":"` + strings.Repeat("x", 201) + `","embedding_model":"\u0000"}`,
			[]string{"llm_model", "embedding_model"},
		},
	} {
		var change SettingsChange
		if err := json.Unmarshal([]byte(c.body), &change); err != nil {
			t.Fatal(err)
		}
		s := DefaultSettings()
		change.Apply(&s)
		check(t, name, s.Validate(), c.want...)
	}
	s := DefaultSettings()
	s.LLMTemperature = math.NaN()
	check(t, "not a number", s.Validate(), "llm_temperature")
}

func TestSettingsNullTakesTheDefault(t *testing.T) {
	s := Settings{
		LLMProvider:       "openai",
		LLMTemperature:    1.5,
		TemperatureSet:    true,
		Timezone:          "Europe/Berlin",
		RetentionDays:     5,
		EmbeddingProvider: "openai-compatible",
		AutoReply:         true,
	}
	var change SettingsChange
	body := `{"llm_provider":null,"llm_temperature":null,"timezone":null,"retention_days":null,` +
		`"embedding_provider":null,"auto_reply":null}`
	if err := json.Unmarshal([]byte(body), &change); err != nil {
		t.Fatal(err)
	}
	change.Apply(&s)
	if s != DefaultSettings() {
		t.Errorf("got %+v", s)
	}
}

func TestSettingsCredentials(t *testing.T) {
	var change SettingsChange
	if err := json.Unmarshal(
		[]byte(`{"openai_api_key":"sk-1","llm_api_key":null,"chatbot_a_token":""}`),
		&change,
	); err != nil {
		t.Fatal(err)
	}
	given := change.Credentials()
	if len(given) != 3 ||
		given["openai_api_key"] != "sk-1" ||
		given["llm_api_key"] != "" ||
		given["chatbot_a_token"] != "" {
		t.Errorf("got %q", given)
	}
	all := SettingsChange{
		OpenAIKey:     Some("a"),
		AnthropicKey:  Some("b"),
		LLMKey:        Some("c"),
		EmbeddingKey:  Some("d"),
		ChatbotAToken: Some("e"),
	}
	for _, name := range Credentials {
		if all.Credentials()[name] == "" {
			t.Errorf("%s is not removed from the change", name)
		}
	}
	secret := strings.Repeat("hush", 3000)
	err := SettingsChange{AnthropicKey: Some(secret)}.Validate()
	check(t, "long", err, "anthropic_api_key")
	if strings.Contains(err.Error(), "hush") {
		t.Error("the error contains the credential")
	}
}
