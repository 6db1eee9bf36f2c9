#!/bin/sh
# Fetches Apache ECharts from the npm registry and checks it against SHA256SUMS.
set -eu
version=6.1.0
cd "$(dirname "$0")"
here=$PWD
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
npm pack --silent "echarts@$version" >/dev/null
tar xzf "echarts-$version.tgz" package/dist/echarts.min.js package/LICENSE package/NOTICE
mv package/dist/echarts.min.js package/LICENSE package/NOTICE .
sha256sum -c "$here/SHA256SUMS"
cp echarts.min.js LICENSE NOTICE "$here"
