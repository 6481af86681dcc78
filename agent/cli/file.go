package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxFile is the largest settings file in bytes. The TOML library's time is
// quadratic in the nesting depth, so the limit is close to what settings need.
const maxFile = 64 << 10

// origin is where values are looked up.
type origin struct {
	flags  Lookup
	getenv func(string) string
	path   string               // the file that was read, "" if none was
	values map[string]fileValue // its values, by setting name
}

// fileValue is a value in the file, with its key as written.
type fileValue struct {
	key   string
	value any
}

// readFile selects and reads the settings file, and maps its keys to the table.
// It returns every problem found.
func (o *origin) readFile(file string) []error {
	path, namedBy := file, ""
	if value, given := o.flags(configFile.Flag); given {
		path, namedBy = value, "flag --"+configFile.Flag
	} else if value := o.getenv(configFile.Env); value != "" {
		path, namedBy = value, "variable "+configFile.Env
	}
	if path == "" {
		if namedBy != "" {
			return []error{&Error{
				Name:   configFile.Name,
				Source: namedBy,
				Issue:  "is empty",
			}}
		}
		return nil
	}
	text, err := readText(path)
	if errors.Is(err, fs.ErrNotExist) && namedBy == "" {
		return nil
	}
	if err != nil {
		problem := &Error{
			Name:   configFile.Name,
			Source: namedBy,
			Issue:  strconv.Quote(path) + " cannot be read: " + fileErrorText(err),
		}
		if namedBy == "" {
			problem.Source = path
			problem.Issue = "cannot be read: " + fileErrorText(err)
		}
		return []error{problem}
	}
	o.path = path
	return o.parse(text)
}

func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("larger than %d bytes", maxFile)
	}
	return string(text), nil
}

// fileErrorText removes the operation and path that os puts in front of an error.
func fileErrorText(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// parse maps the keys of a TOML text to settings.
func (o *origin) parse(text string) []error {
	var keys map[string]any
	if _, err := toml.Decode(text, &keys); err != nil {
		// The library's text contains the invalid part, which may be a key.
		var at toml.ParseError
		if errors.As(err, &at) {
			return []error{&Error{Source: o.path, Issue: fmt.Sprintf("line %d is not valid TOML", at.Position.Line)}}
		}
		return []error{&Error{Source: o.path, Issue: "is not valid TOML"}}
	}
	o.values = make(map[string]fileValue, len(keys))
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name, known := settingOf(key)
		source := o.path + ":" + displayKey(key)
		if !known {
			problems = append(problems, &Error{
				Name:   key,
				Source: source,
				Issue:  "is not a setting",
			})
			continue
		}
		if other, twice := o.values[name]; twice {
			problems = append(problems, &Error{
				Name:   name,
				Source: source,
				Issue:  "sets the same as " + quote(other.key) + "; keep one of them",
			})
			continue
		}
		o.values[name] = fileValue{key: key, value: keys[key]}
	}
	return problems
}

// displayKey returns a key as shown in errors, without quotes if possible.
func displayKey(key string) string {
	if hostname.MatchString(strings.ToLower(key)) {
		return key
	}
	return quote(key)
}

// settingOf returns the setting that a key in the file refers to: by name, flag
// or variable, ignoring case.
func settingOf(key string) (name string, known bool) {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	for _, s := range table {
		if key == s.Name || key == strings.ToLower(s.Env) {
			return s.Name, true
		}
	}
	return "", false
}

// text converts a TOML value to the text of a variable. Lists become
// comma-separated if the setting is a list, and a table becomes k=v pairs if
// the setting consists of such pairs.
func (v fileValue) text(setting Setting) (string, error) {
	switch value := v.value.(type) {
	case []any:
		if !setting.list {
			return "", errors.New("takes one value, not a list")
		}
		parts := make([]string, len(value))
		for i, item := range value {
			part, ok := scalar(item)
			if !ok {
				return "", errors.New("takes a list of strings")
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	case map[string]any:
		if !setting.pairs {
			return "", errors.New("takes one value, not a table")
		}
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			part, ok := scalar(value[key])
			if !ok {
				return "", errors.New("takes a number for each key")
			}
			parts = append(parts, key+"="+part)
		}
		return strings.Join(parts, ","), nil
	default:
		if part, ok := scalar(value); ok {
			return part, nil
		}
		return "", errors.New("takes a string, an integer, or true or false")
	}
}

func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case int64:
		return strconv.FormatInt(value, 10), true
	case bool:
		return strconv.FormatBool(value), true
	default:
		return "", false
	}
}
