#!/usr/bin/env bash
# build.sh JDK VERSION OUT: makes a folder with one Elasticsearch node of the jars that its makers publish. The published
# jars are the server and its HTTP transport, without the distribution around them; see EsNode.java.
set -euo pipefail
jdk=$1 version=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$(dirname "$out")"
part=$(mktemp -d "$out.XXXXXX") # renamed when complete: two runs at once do not meet
trap 'rm -rf "$part"' EXIT
mkdir -p "$part"/{lib,plugins,config,native,classes,modules/transport-netty4}

# fetch PROFILE FOLDER
fetch() {
	mvn -q -B -f "$here/pom.xml" -P "$1" -Des.version="$version" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$part/$2"
}
fetch server lib
fetch netty netty

# The transport is a module of the server: the jars that are its own in a folder, with the descriptor that they carry, less
# the line that asks for Java modules. The server itself stands on the class path here.
module=$part/modules/transport-netty4
for jar in "$part"/netty/*.jar; do
	[[ -f $part/lib/${jar##*/} ]] || mv "$jar" "$module/"
done
rm -rf "$part/netty"
cd "$module"
"$jdk/bin/jar" xf "transport-netty4-$version.jar" META-INF/es-plugins/transport-netty4 2>/dev/null || true
descriptor=META-INF/es-plugins/transport-netty4/plugin-descriptor.properties
if [[ -f $descriptor ]]; then
	grep -vE '^(modulename|#|$)' "$descriptor" >plugin-descriptor.properties
else # 8.x carries none
	printf '%s\n' "description=transport" "version=$version" "name=transport-netty4" "java.version=17" \
		"elasticsearch.version=$version" "classname=org.elasticsearch.transport.netty4.Netty4Plugin" >plugin-descriptor.properties
fi
rm -rf META-INF
cp "$here/log4j2.properties" "$part/config/"
"$jdk/bin/javac" -cp "$part/lib/*" -d "$part/classes" "$here/EsNode.java"
mkdir "$part/english" "$part/modules/english"
"$jdk/bin/javac" -cp "$part/lib/*" -d "$part/english" "$here/EnglishPlugin.java"
"$jdk/bin/jar" cf "$part/modules/english/english.jar" -C "$part/english" .
printf '%s\n' "description=analyzer" "version=$version" "name=english" "java.version=17" "elasticsearch.version=$version" \
	"classname=EnglishPlugin" >"$part/modules/english/plugin-descriptor.properties"
rm -rf "$part/english"
chmod 755 "$part"
mv -T "$part" "$out"
