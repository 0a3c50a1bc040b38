package engine

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// withDefaults adds defaults for members that body omits: the indexing policy, the hash version of partition keys
// (which clients need), and policies that the engine only stores.
func withDefaults(body []byte, d *definition) ([]byte, error) {
	var all, key map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, badRequest("container: %v", err)
	}
	if err := json.Unmarshal(all["partitionKey"], &key); err != nil {
		return nil, badRequest("container: partitionKey: %v", err)
	}
	key["version"] = strconv.AppendInt(nil, int64(d.PartitionKey.Version), 10)
	var err error
	if all["partitionKey"], err = json.Marshal(key); err != nil {
		return nil, err
	}
	if all["indexingPolicy"], err = completePolicy(d.Indexing); err != nil {
		return nil, err
	}
	for name, value := range containerDefaults {
		if text := all[name]; len(text) == 0 || string(text) == "null" {
			all[name] = json.RawMessage(value)
		}
	}
	return json.Marshal(all)
}

// containerDefaults are the properties that every container has and that the engine only stores.
var containerDefaults = map[string]string{
	"conflictResolutionPolicy": `{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`,
	"geospatialConfig":         `{"type":"Geography"}`,
}

// etagPath is the path that every indexing policy excludes.
const etagPath = `/"_etag"/?`

// completePolicy adds the default members that the indexing policy raw omits. It also adds etagPath to the excluded
// paths.
func completePolicy(raw json.RawMessage) (json.RawMessage, error) {
	var policy map[string]json.RawMessage
	if err := json.Unmarshal(raw, &policy); err != nil {
		return nil, badRequest("indexingPolicy: %v", err)
	}
	var mode string
	if err := json.Unmarshal(policy["indexingMode"], &mode); err == nil && strings.EqualFold(mode, "none") {
		return raw, nil
	}
	var included, excluded []json.RawMessage
	for name, list := range map[string]*[]json.RawMessage{"includedPaths": &included, "excludedPaths": &excluded} {
		if text := policy[name]; len(text) > 0 {
			if err := json.Unmarshal(text, list); err != nil {
				return nil, badRequest("indexingPolicy: %s: %v", name, err)
			}
		}
	}
	if len(included) == 0 && len(excluded) == 0 {
		included = append(included, json.RawMessage(`{"path":"/*"}`))
	}
	hasETag := slices.ContainsFunc(slices.Concat(included, excluded), func(path json.RawMessage) bool {
		var p pathJSON
		return json.Unmarshal(path, &p) == nil && (p.Path == etagPath || p.Path == "/_etag/?")
	})
	if !hasETag {
		excluded = append(excluded, json.RawMessage(`{"path":"/\"_etag\"/?"}`))
	}
	for name, value := range map[string]string{"indexingMode": `"consistent"`, "automatic": "true"} {
		if len(policy[name]) == 0 {
			policy[name] = json.RawMessage(value)
		}
	}
	var err error
	if policy["includedPaths"], err = json.Marshal(slices.Concat([]json.RawMessage{}, included)); err != nil {
		return nil, err
	}
	if policy["excludedPaths"], err = json.Marshal(excluded); err != nil {
		return nil, err
	}
	return json.Marshal(policy)
}

// addSystemProperties returns body with the properties that the engine sets.
func (e *Engine) addSystemProperties(body []byte, id, self string, version uint64, more string) ([]byte, error) {
	doc, err := rawjson.Compact(nil, body)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if doc, err = removeMembers(doc, isMetadata); err != nil {
		return nil, err
	}
	doc = append(doc[:len(doc)-1], `,"_rid":"`...)
	doc = append(doc, id...)
	doc = append(doc, `","_self":"`...)
	doc = append(doc, self...)
	doc = append(doc, `","_etag":`...)
	doc = rawjson.AppendQuoted(doc, e.formatETag(version))
	doc = append(doc, more...)
	doc = append(doc, `,"_ts":`...)
	doc = strconv.AppendInt(doc, e.clock().Unix(), 10)
	return append(doc, '}'), nil
}
