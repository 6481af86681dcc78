package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// gatewayTexts returns the names of all text fields of a config.
func gatewayTexts() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[GatewayConfigChange]()) {
		if f.Type == reflect.TypeFor[Optional[string]]() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// gatewayConfig returns a config with a text in the given fields.
func gatewayConfig(t *testing.T, fields ...string) (config GatewayConfig) {
	t.Helper()
	for _, name := range fields {
		var change GatewayConfigChange
		if err := json.Unmarshal(fmt.Appendf(nil, `{%q:"x"}`, name), &change); err != nil {
			t.Fatal(err)
		}
		change.Apply(&config)
	}
	return config
}

// TestGatewayFields: each text field of a change is applied, and listed among the
// fields that are set.
func TestGatewayFields(t *testing.T) {
	for _, name := range gatewayTexts() {
		config := gatewayConfig(t, name)
		if got := config.Fields(); !slices.Equal(got, []string{name}) {
			t.Errorf("%s: the fields that are set are %q", name, got)
		}
	}
}

// TestGatewayTypes: each type is in the enum and the error that list the types, has
// fields of its own, and a change of only the address never sends its credential to
// another host.
func TestGatewayTypes(t *testing.T) {
	field, _ := reflect.TypeFor[Gateway]().FieldByName("Type")
	enum := strings.Split(field.Tag.Get("enum"), ",")
	invalid := (&Gateway{Type: "fax", Name: "x"}).Validate().Error()
	for _, kind := range GatewayTypes {
		named := strings.Contains(invalid, string(kind)) ||
			strings.Contains(invalid, strings.ToLower(kind.PlatformName()))
		if !slices.Contains(enum, string(kind)) || !named {
			t.Errorf("%s is missing in the enum %q or in the error %q", kind, enum, invalid)
		}
		config := gatewayConfig(t, gatewayTexts()...)
		if config.ClearOtherTypes(kind); len(config.Fields()) == 0 || len(config.Fields()) == len(gatewayTexts()) {
			t.Errorf("%s keeps %q", kind, config.Fields())
		}
		if config.APIBaseURL != "" && config.APIAddress(kind) != config.APIBaseURL {
			t.Errorf("%s: apiBaseUrl is kept, but CheckHosts compares %q", kind, config.APIAddress(kind))
		}
	}
	if len(enum) != len(GatewayTypes) {
		t.Errorf("the enum is %q", enum)
	}
}
