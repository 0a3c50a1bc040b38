package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// adminTokenName is the name of the file in the data folder that contains the
// operator's token. A node creates the file if its configuration contains no
// token.
const adminTokenName = "admin.token"

// AdminTokenFile returns the path of the file that contains the operator's
// token.
func AdminTokenFile(folder string) string { return filepath.Join(folder, adminTokenName) }

// ReadAdminToken reads the operator's token from a data folder. It fails with
// fs.ErrNotExist if the file does not exist. It refuses a link, and a file that
// other users may read.
func ReadAdminToken(folder string) (config.Secret, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", tokenFault(folder, err)
	}
	defer func() { _ = root.Close() }() // nothing is lost if Close fails, because nothing was written through root
	token, err := readToken(root)
	if err != nil {
		return "", tokenFault(folder, err)
	}
	return token, nil
}

// ensureAdminToken returns the token stored in the data folder. It creates the
// folder and the token if they do not exist.
func ensureAdminToken(cfg *config.Config, logger *slog.Logger) (config.Secret, error) {
	folder := cfg.Data
	if folder == "" {
		return "", errors.New("there is no data folder")
	}
	if err := datafolder.Make(folder); err != nil {
		return "", folderFault(folder, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", folderFault(folder, err)
	}
	defer func() { _ = root.Close() }() // writeSecretFile has already synced the file
	if cfg.InMemory || !cfg.UsesFolder() {
		warnOfOpenFolder(folder, root, logger) // if the folder contains stores, openStore logs this warning instead
	}
	token, err := ReadAdminToken(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := writeSecretFile(root, adminTokenName, "messagehub-"+rand.Text()+"\n"); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", folderFault(folder, err)
	}
	return ReadAdminToken(folder) // another process may have created the file first, so it is read again
}

func readToken(root *os.Root) (config.Secret, error) {
	text, err := readSecretFile(root, adminTokenName, "remove it, and the hub makes another token at its next start")
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(text)
	if !config.IsToken(token) {
		return "", errors.New("it does not hold a token; remove it, and the hub makes another at its next start")
	}
	return config.Secret(token), nil
}

func tokenFault(folder string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("operator's token %s: %w", AdminTokenFile(folder), err)
}
