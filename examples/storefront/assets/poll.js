// Instead of the page's refresh, which is for browsers without JavaScript.
const report = document.getElementById("report");

async function poll() {
  try {
    const response = await fetch(`${location.pathname}/status`);
    const news = await response.json();
    if (news.is_final) return location.reload();
    if (report.textContent !== news.message) report.textContent = news.message;
  } catch {
    // The shop may be back in a moment.
  }
  setTimeout(poll, 1000);
}
setTimeout(poll, 500);
