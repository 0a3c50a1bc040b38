package engine

import (
	"encoding/json"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// withDefaults adds the defaults that body leaves out: the indexing policy, and the hash
// version of partition keys, which clients need.
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
	all["indexingPolicy"] = d.Indexing
	return json.Marshal(all)
}

// systemProperties returns body with the properties that the engine sets.
func (e *Engine) systemProperties(body []byte, id, self string, version uint64, more string) ([]byte, error) {
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
