package testcluster

import (
	"context"
	"embed"
	"io/fs"
)

//go:embed crds/*.yaml seed/*.yaml
var manifests embed.FS

// applyFolder applies every manifest of an embedded folder, in name order.
func (c *Cluster) applyFolder(ctx context.Context, folder string) error {
	return fs.WalkDir(manifests, folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := manifests.ReadFile(path)
		if err != nil {
			return err
		}
		return c.Apply(ctx, text)
	})
}
