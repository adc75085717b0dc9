package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// rewrite makes of buildah's image one with more labels and without what makes
// each build another: into docker's format buildah 1.28 writes the ID of its
// working container and a random host name, and has no option against it. The
// new configuration is given back as an image without layers: the store has
// those already and asks for none.
func (s *storeImage) rewrite(ctx context.Context, added map[string]string) error {
	text, err := s.run(ctx, "inspect", "--type", "image", s.id)
	if err != nil {
		return err
	}
	var seen struct{ Config, Manifest string }
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		return fmt.Errorf("buildah inspect: %w", err)
	}
	config, err := settled([]byte(seen.Config), added)
	if err != nil {
		return fmt.Errorf("configuration of %s: %w", s.id, err)
	}
	manifest, err := naming([]byte(seen.Manifest), config)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", s.id, err)
	}
	dir := s.job.Made + ".dir"
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	sum := sha256.Sum256(config)
	for name, b := range map[string][]byte{
		"version": []byte("Directory Transport Version: 1.1\n"), "manifest.json": manifest, hex.EncodeToString(sum[:]): config,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	// Who has built the same before may have given it names.
	_, err = s.run(ctx, "inspect", "--type", "image", hex.EncodeToString(sum[:]))
	s.keep = err == nil
	s.final, err = s.run(ctx, "pull", "--quiet", "dir:"+dir)
	return err
}

// settled is a configuration in docker's format with more labels and nothing
// that is of one build only.
func settled(config []byte, added map[string]string) ([]byte, error) {
	all, err := object(config)
	if err != nil {
		return nil, err
	}
	// What docker remembers of the container that was committed, and the parent
	// in the store of one host.
	for _, name := range []string{"container", "container_config", "parent"} {
		delete(all, name)
	}
	run, ok := all["config"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no config in it")
	}
	run["Hostname"] = ""
	set, ok := run["Labels"].(map[string]any)
	if !ok {
		set = map[string]any{}
	}
	for k, v := range added {
		set[k] = v
	}
	run["Labels"] = set
	return json.Marshal(all)
}

// naming is a manifest with config in place of the one it names.
func naming(manifest, config []byte) ([]byte, error) {
	all, err := object(manifest)
	if err != nil {
		return nil, err
	}
	of, ok := all["config"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no config in it")
	}
	sum := sha256.Sum256(config)
	of["digest"], of["size"] = "sha256:"+hex.EncodeToString(sum[:]), len(config)
	return json.Marshal(all)
}

// object reads a JSON object; numbers stay as they are written.
func object(text []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}
