package agent

// MapStrings returns a JSON value in which fn has replaced every string that is
// not a member's name. item itself is left as it is.
func MapStrings(item any, fn func(string) any) any {
	switch v := item.(type) {
	case string:
		return fn(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = MapStrings(v[i], fn)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, value := range v {
			object[name] = MapStrings(value, fn)
		}
		return object
	}
	return item
}
