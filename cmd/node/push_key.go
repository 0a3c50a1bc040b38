package node

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// pushKeyName is the file in the data folder that contains an encryption key. A
// node creates the key if its configuration contains none.
const pushKeyName = "push.key"

// pushKeys returns the keys that encrypt subscriptions' secrets: the configured
// keys, and the key in the data folder. If no key is configured, a node that
// stores payloads in the folder creates a key there; its data depends on the
// folder anyway. Other nodes use only configured keys, because all nodes need
// the same keys.
func pushKeys(cfg *config.Config) (*subscribe.Keyring, error) {
	keys, err := cfg.Push.Keys()
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.InMemory:
		keys = append(keys, subscribe.NewKey())
	case cfg.EmbeddedBlob():
		kept, err := ensurePushKey(cfg.Data, len(keys) == 0)
		if err != nil {
			return nil, fmt.Errorf("key of the secrets of subscriptions, %s: %w", filepath.Join(cfg.Data, pushKeyName), err)
		}
		if kept != nil {
			keys = append(keys, kept)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return subscribe.NewKeyring(keys...)
}

// ensurePushKey returns the key in a data folder. If the folder contains no
// key, it creates one if makes is true; otherwise it returns nil.
func ensurePushKey(folder string, makes bool) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, folderFault(folder, err)
	}
	defer func() { _ = root.Close() }() // writeSecretFile has already synced the file
	text, err := readSecretFile(root, pushKeyName, "restore it, or correct its mode: without the key, secrets that were sealed by it are lost")
	switch {
	case err == nil:
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil || len(key) != subscribe.KeySize {
			return nil, fmt.Errorf("it does not hold the Base64 of %d bytes; restore it", subscribe.KeySize)
		}
		return key, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !makes:
		return nil, nil
	}
	key := subscribe.NewKey()
	if err := writeSecretFile(root, pushKeyName, base64.StdEncoding.EncodeToString(key)+"\n"); err != nil {
		return nil, err
	}
	return key, nil
}
