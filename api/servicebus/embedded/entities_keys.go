package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// entitiesFile is the content of an entities file: a namespace, or the complete config.json of Microsoft's emulator.
type entitiesFile struct {
	Entities
	UserConfig *struct {
		Namespaces []Entities
		Logging    map[string]any // settings of Microsoft's emulator, which are ignored
	}
}

// A keyReader compares JSON text with the Go type into which it will be decoded. It is needed because encoding/json
// ignores unknown keys, and its errors name Go types.
type keyReader struct {
	text    []byte
	decoder *json.Decoder
}

// validateKeys returns an error for the first unknown key or the first value of a wrong type. The error names the line
// and the path.
func validateKeys(text []byte, into reflect.Type) error {
	r := keyReader{text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	r.decoder.UseNumber()
	if err := r.readValue("", into); err != nil {
		return err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return r.fault("", "want nothing after the first value")
	}
	return nil
}

// fault returns an error that names the current line and the path.
func (r *keyReader) fault(path, format string, args ...any) error {
	line := 1 + bytes.Count(r.text[:r.decoder.InputOffset()], []byte("\n"))
	where := fmt.Sprintf("line %d", line)
	if path != "" {
		where += ", " + path
	}
	return fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...))
}

func (r *keyReader) nextToken(path string) (json.Token, error) {
	token, err := r.decoder.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, r.fault(path, "not JSON: the text ends too early")
	case err != nil:
		return nil, r.fault(path, "not JSON: %s", err.Error())
	}
	return token, nil
}

// readValue reads the value at path, which must fit the type into.
func (r *keyReader) readValue(path string, into reflect.Type) error {
	for into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	token, err := r.nextToken(path)
	if err != nil || token == nil { // null selects the default
		return err
	}
	want, isRight := "", true
	switch into.Kind() { //nolint:exhaustive // entities have no other
	case reflect.Struct:
		want, isRight = "an object", token == json.Delim('{')
	case reflect.Slice:
		want, isRight = "a list", token == json.Delim('[')
	case reflect.Map:
		want, isRight = "an object", token == json.Delim('{')
	case reflect.String:
		_, isRight = token.(string)
		want = "a text"
	case reflect.Bool:
		_, isRight = token.(bool)
		want = "true or false"
	case reflect.Int64, reflect.Uint32:
		number, isNumber := token.(json.Number)
		isRight = isNumber && json.Unmarshal([]byte(number), reflect.New(into).Interface()) == nil
		want = "a whole number of at least 0"
	}
	if !isRight {
		return r.fault(path, "want %s", want)
	}
	switch {
	case into.Kind() == reflect.Struct:
		return r.readObject(path, into)
	case into.Kind() == reflect.Slice:
		return r.readList(path, into.Elem())
	case token == json.Delim('{'), token == json.Delim('['):
		return r.skipRest(path)
	}
	return nil
}

func (r *keyReader) readObject(path string, into reflect.Type) error {
	for r.decoder.More() {
		token, err := r.nextToken(path)
		if err != nil {
			return err
		}
		name, _ := token.(string) // a Decoder returns only strings as object keys
		below := strings.TrimPrefix(path+"."+name, ".")
		field, exists := findKey(into, name)
		if !exists {
			return r.fault(below, "no such key; known are %s", strings.Join(keysOf(into), ", "))
		}
		if err := r.readValue(below, field.Type); err != nil {
			return err
		}
	}
	_, err := r.nextToken(path)
	return err
}

func (r *keyReader) readList(path string, element reflect.Type) error {
	for i := 0; r.decoder.More(); i++ {
		if err := r.readValue(fmt.Sprintf("%s[%d]", path, i), element); err != nil {
			return err
		}
	}
	_, err := r.nextToken(path)
	return err
}

// skipRest reads the rest of an object or a list.
func (r *keyReader) skipRest(path string) error {
	for depth := 1; depth > 0; {
		token, err := r.nextToken(path)
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// keyOf returns the JSON key of a field. It returns "" for an embedded struct, because the struct's own fields have
// keys.
func keyOf(f *reflect.StructField) string {
	if f.Anonymous {
		return ""
	}
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return f.Name
}

// findKey returns the field of type into whose JSON key is name.
func findKey(into reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(into) {
		if key := keyOf(&f); key != "" && strings.EqualFold(key, name) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func keysOf(into reflect.Type) (keys []string) {
	for _, f := range reflect.VisibleFields(into) {
		if key := keyOf(&f); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
