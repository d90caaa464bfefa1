// What a save does to the files around it: the one it replaces, links to it, leftovers of killed writers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "catalogue.hpp"

namespace finch_test {
namespace {

namespace fs = std::filesystem;

class Save : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::path(testing::TempDir()) / ("finch-save-" + std::to_string(getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder);
    path = (folder / "index.finch").string();
    ASSERT_EQ(index.upsert({"a", "b"}, {1, 2, 3, 4}), FINCH_OK);
  }
  void TearDown() override { fs::remove_all(folder); }

  finch_status save(const std::string& to) { return finch_index_save(index.get(), to.c_str(), nullptr, 0); }
  void expect_opens(const std::string& from) {
    finch_index* handle = nullptr;
    ASSERT_EQ(finch_index_open(from.c_str(), nullptr, &handle), FINCH_OK) << finch_last_error();
    EXPECT_EQ(Index(handle).info().count, 2u);
  }
  std::set<std::string> listing(const fs::path& of) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(of)) names.insert(entry.path().filename().string());
    return names;
  }
  static mode_t mode(const std::string& of) {
    struct stat info {};
    EXPECT_EQ(stat(of.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  // The number of a process that was and is no more.
  static pid_t dead_process() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    return child;
  }

  Index index{2};
  fs::path folder;
  std::string path;
};

TEST_F(Save, ANewFileFollowsTheUmask) {
  const mode_t before = umask(027);
  EXPECT_EQ(save(path), FINCH_OK);
  umask(before);
  EXPECT_EQ(mode(path), 0640u);
}

TEST_F(Save, TheFileReplacedKeepsItsMode) {
  ASSERT_EQ(save(path), FINCH_OK);
  for (const mode_t wanted : {0600u, 0664u, 0444u, 0640u}) {
    ASSERT_EQ(chmod(path.c_str(), wanted), 0);
    ASSERT_EQ(save(path), FINCH_OK) << finch_last_error();
    EXPECT_EQ(mode(path), wanted);
    expect_opens(path);
  }
}

TEST_F(Save, TheFileReplacedKeepsItsOwnerWherePermitted) {
  if (geteuid() != 0) {  // then nobody else's file is there to be replaced; our own stays our own
    ASSERT_EQ(save(path), FINCH_OK);
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, geteuid());
    return;
  }
  ASSERT_EQ(save(path), FINCH_OK);
  ASSERT_EQ(chown(path.c_str(), 12345, 23456), 0);
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(save(path), FINCH_OK);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 12345u);
  EXPECT_EQ(info.st_gid, 23456u);
  EXPECT_EQ(mode(path), 0640u);
}

// Who may write the folder may replace the file, but not give it away: then the group's rights must not go to another
// group than they were meant for.
TEST_F(Save, AGroupThatCannotBeKeptGivesNoRights) {
  if (geteuid() != 0) return;  // needs two users
  ASSERT_EQ(save(path), FINCH_OK);
  ASSERT_EQ(chown(path.c_str(), 12345, 23456), 0);
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(777) != 0 || setuid(777) != 0) _exit(2);
    _exit(finch_index_save(index.get(), path.c_str(), nullptr, 0) == FINCH_OK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 777u);
  EXPECT_EQ(mode(path), 0644u);
}

TEST_F(Save, WritesThroughLinks) {
  fs::create_directories(folder / "data" / "real");
  const std::string real = (folder / "data" / "real" / "file").string();
  ASSERT_EQ(save(real), FINCH_OK);
  ASSERT_EQ(chmod(real.c_str(), 0600), 0);
  fs::create_symlink("real/file", folder / "data" / "second");  // relative to its own folder
  fs::create_symlink(folder / "data" / "second", path);
  ASSERT_EQ(index.upsert({"a"}, {5, 6}), FINCH_OK);
  const auto before = fs::last_write_time(real);
  fs::last_write_time(real, before - std::chrono::hours(1));
  ASSERT_EQ(save(path), FINCH_OK) << finch_last_error();
  EXPECT_TRUE(fs::is_symlink(path));
  EXPECT_TRUE(fs::is_symlink(folder / "data" / "second"));
  EXPECT_FALSE(fs::is_symlink(real));
  EXPECT_GE(fs::last_write_time(real), before);
  EXPECT_EQ(mode(real), 0600u);
  expect_opens(path);
  EXPECT_EQ(listing(folder / "data" / "real"), std::set<std::string>{"file"});
}

TEST_F(Save, ALinkToNothingMakesItsTarget) {
  fs::create_symlink("later", path);
  ASSERT_EQ(save(path), FINCH_OK) << finch_last_error();
  EXPECT_TRUE(fs::is_symlink(path));
  EXPECT_TRUE(fs::is_regular_file(folder / "later"));
  fs::create_symlink("missing/later", folder / "astray");
  EXPECT_EQ(save((folder / "astray").string()), FINCH_IO);
}

TEST_F(Save, RefusesWhatIsNoFile) {
  fs::create_symlink("circle-b", folder / "circle-a");
  fs::create_symlink("circle-a", folder / "circle-b");
  EXPECT_EQ(save((folder / "circle-a").string()), FINCH_IO);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(save((folder / "pipe").string()), FINCH_IO);
  fs::create_symlink("/dev/null", folder / "null");
  EXPECT_EQ(save((folder / "null").string()), FINCH_IO) << "a device must not be replaced by a file";
  EXPECT_EQ(save(folder.string()), FINCH_IO);
  EXPECT_EQ(listing(folder), (std::set<std::string>{"circle-a", "circle-b", "pipe", "null"}));
}

TEST_F(Save, ClearsAwayWhatKilledWritersLeft) {
  const std::string dead = std::to_string(dead_process());
  const std::string alive = std::to_string(getppid());
  const auto touch = [&](const std::string& name) { std::ofstream(folder / name) << "part"; };
  touch("index.finch.tmp-" + dead + "-00c0ffee00c0ffee");
  touch("index.finch.tmp-" + dead + "-7");
  const std::set<std::string> stay{
      "index.finch.tmp-" + alive + "-00c0ffee00c0ffee",     // being written
      "index.finch.tmp-" + dead + "-00c0ffee00c0ff11",      // locked: its process is of another container
      "other.finch.tmp-" + dead + "-00c0ffee00c0ffee",      // another file's
      "index.finch.tmp-" + dead + "-00c0ffee00c0ffee.bak",  // nothing of ours
      "index.finch.tmp-" + dead + "-",
      "index.finch.tmp--7",
      "index.finch.tmp-99999999999-7",
      "index.finch.tmp-notes",
      "xindex.finch.tmp-" + dead + "-7",
  };
  for (const std::string& name : stay) touch(name);
  fs::create_directories(folder / ("index.finch.tmp-" + dead + "-f01de7"));
  fs::create_symlink("other.finch.tmp-" + dead + "-00c0ffee00c0ffee", folder / ("index.finch.tmp-" + dead + "-11"));
  const int lock = open((folder / ("index.finch.tmp-" + dead + "-00c0ffee00c0ff11")).c_str(), O_RDONLY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  ASSERT_EQ(save(path), FINCH_OK) << finch_last_error();
  close(lock);
  std::set<std::string> expected = stay;
  expected.insert({"index.finch", "index.finch.tmp-" + dead + "-f01de7", "index.finch.tmp-" + dead + "-11"});
  EXPECT_EQ(listing(folder), expected);
  ASSERT_EQ(save(path), FINCH_OK);
  expected.erase("index.finch.tmp-" + dead + "-00c0ffee00c0ff11");
  EXPECT_EQ(listing(folder), expected) << "no longer locked";
}

// Killed for real, at whatever point it is: the file is whole, and the next save leaves nothing else.
TEST_F(Save, AKilledWriterCostsNothing) {
  ASSERT_EQ(save(path), FINCH_OK);
  Random random(1);
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) finch_index_save(index.get(), path.c_str(), nullptr, 0);
    }
    usleep(static_cast<useconds_t>(random() % 8000));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    expect_opens(path);
  }
  ASSERT_EQ(save(path), FINCH_OK);
  EXPECT_EQ(listing(folder), std::set<std::string>{"index.finch"});
}

}  // namespace
}  // namespace finch_test
