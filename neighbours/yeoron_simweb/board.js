"use strict";
(() => {
  const list = document.getElementById("posts");
  const more = document.getElementById("more");
  const single = location.pathname.match(/^\/board\/p\/([0-9a-f]+)$/);
  let cursor = "";
  let loading = false;
  let ended = false;

  function append(post) {
    const article = document.createElement("article");
    article.className = "post";
    article.dataset.id = post.id;
    article.dataset.time = post.time;
    const heading = document.createElement("h2");
    const link = document.createElement("a");
    link.href = post.url;
    link.textContent = post.title;
    heading.append(link);
    const byline = document.createElement("p");
    byline.className = "byline";
    const author = document.createElement("span");
    author.className = "author";
    author.textContent = post.author;
    const time = document.createElement("time");
    time.dateTime = post.time;
    time.textContent = post.time.replace("T", " ").slice(0, 16) + " UTC";
    byline.append(author, " ", time);
    const body = document.createElement("div");
    body.className = "body";
    for (const line of post.body.split("\n")) {
      if (!line.trim()) continue;
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      body.append(paragraph);
    }
    article.append(heading, byline, body);
    list.append(article);
  }

  async function load() {
    if (loading || ended) return;
    loading = true;
    try {
      const path = single
        ? "/board/api/posts/" + single[1]
        : "/board/api/posts?before=" + encodeURIComponent(cursor);
      const answer = await fetch(path);
      if (!answer.ok) throw new Error(String(answer.status));
      const data = await answer.json();
      for (const post of single ? [data] : data.posts) append(post);
      cursor = single ? null : data.next;
      ended = !cursor;
      more.textContent = ended ? "끝입니다." : "더 보기…";
      more.dataset.state = ended ? "end" : "more";
    } catch (error) {
      more.textContent = "불러오지 못했습니다.";
      more.dataset.state = "error";
      ended = true;
    } finally {
      loading = false;
    }
    if (!ended && more.getBoundingClientRect().top < innerHeight) load();
  }

  addEventListener("scroll", () => {
    if (more.getBoundingClientRect().top < innerHeight + 400) load();
  }, { passive: true });
  load();
})();
